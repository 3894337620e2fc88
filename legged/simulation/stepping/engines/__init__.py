"""Step engines: time steps of all robots in machine code, or one integrator per robot in Python."""
