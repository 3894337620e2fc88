"""The paper's quadruped trots under feed-forward control; writes the run, figures and an animation."""

import sys
from pathlib import Path

import controllers
import legged
import robots
from legged.ground import paper_ground
from legged.simulation import plots

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/trot")
robot = robots.spatial_quadruped()
gait = controllers.Trot(period=1.0, stride=0.3, clearance=0.08, hip_height=0.5)  # [s], [m], [m], [m]
law = controllers.FeedForward(gait, kp=49.0, kd=14.0)  # [N m/rad], [N m s/rad]
run = legged.simulate(robot, law, ground=paper_ground(robot), until=2.0)

print(f"trotted to x = {run.base.position[-1, 0]:.2f} m")
paths = [*plots.save_figures(run, folder), run.save(folder / "run.npz")]
paths.append(plots.animate(run, folder / "trot.gif", fps=10))
print("wrote", ", ".join(path.name for path in paths))
