"""Published tests of rigid contact in our simulation, MuJoCo, Drake and Pinocchio: `python -m benchmarks.contact`."""
