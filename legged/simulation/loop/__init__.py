"""The closed loop of robot, controller and surroundings: its equations, time steps and results."""
