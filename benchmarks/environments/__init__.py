"""Speed and memory of environments, beside mjbatch with the same task in NumPy."""
