"""Published tests of rigid contact in our simulation, MuJoCo and Drake: `python -m benchmarks.contact`."""
