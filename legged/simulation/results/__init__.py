"""Runs: recording of states and outputs, saving and loading, stick figures."""
