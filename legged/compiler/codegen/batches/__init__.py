"""Writers of the functions that call a kernel for all states of a batch, or for the time steps of its members."""
