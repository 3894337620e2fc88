"""A law on a robot in another process."""
