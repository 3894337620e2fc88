"""Rows of the measurements of walking robots with tables of their own."""
