"""Reading and writing of URDF."""
