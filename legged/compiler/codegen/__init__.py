"""Code generation: LLVM IR and machine code of graphs, C99, and the functions that call a kernel."""
