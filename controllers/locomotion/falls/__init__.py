"""Falls and rest: a law that stands up, and motions that turn a lying robot over."""
