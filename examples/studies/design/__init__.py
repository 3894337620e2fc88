"""The design study: legs and gait of the paper's robots against cost of transport and recovery from pushes."""
