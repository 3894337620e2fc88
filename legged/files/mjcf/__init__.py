"""Reading and writing of MJCF."""
