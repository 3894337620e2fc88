"""Parts of the benchmarks: robots, other programs, timing, targets, records of results and the report."""
