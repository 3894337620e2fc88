"""The paper's biped walks on the authors' ground under computed-torque control."""

import controllers
import legged
import robots
from legged.ground import paper_ground

robot = robots.planar_biped()
gait = controllers.paper_walk()
run = legged.simulate(robot, controllers.ComputedTorque(gait), ground=paper_ground(robot), until=3.0)

print(run)
print(f"advanced {run.base.position[-1, 0] - run.base.position[0, 0]:.2f} m at {run.mean_velocity[0]:.2f} m/s")
print(f"of {run.energy.balance[0]:.1f} J, the energy balance deviates by {run.energy_drift:.0e} J")
