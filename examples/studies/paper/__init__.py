"""The tables and figures of the paper, with the values of this package beside the published ones."""
