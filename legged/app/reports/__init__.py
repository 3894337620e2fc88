"""Reports as pages with figures and tables: of the paper, and of any robot."""
