"""The entry point of kernels, by which Python calls machine code."""
