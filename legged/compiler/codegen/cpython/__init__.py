"""The call of kernels from CPython without ctypes: generated entry points and the object layout that they read."""
