"""Writers of kernels: the LLVM function that evaluates a graph once, for one state or for states in vector lanes."""
