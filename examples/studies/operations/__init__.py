"""Operation counts of the dynamics and of the algorithms, beside the published formulas."""
