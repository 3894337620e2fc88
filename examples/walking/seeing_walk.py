"""A quadruped walks over steps and a gap that only its depth camera shows, with an estimated state.

It writes the map that the camera has made, its standard deviation, and the terrain at the same places.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import controllers
import legged
import robots
from legged import estimation
from legged.ground import HeightMap, RollingHeightMap
from legged.sensors import DepthCamera

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/seeing")
robot, spacing = robots.spatial_quadruped(), 0.02  # [m]
x, y = np.meshgrid(np.arange(-2.0, 4.0, spacing), np.arange(-2.0, 2.0, spacing), indexing="ij")
heights = 0.06 * (x > 0.7) + 0.06 * (x > 1.1) - 0.3 * ((x > 1.6) & (x < 1.7))  # two steps, and a gap of 10 cm
terrain = HeightMap(heights, spacing, (-2.0, -2.0))

known = RollingHeightMap((100, 100), 0.025)  # what the law knows of the ground, 2.5 m around the robot
walk = controllers.Locomotion("trot", controllers.Command(vx=0.4), terrain=known)
law = controllers.Estimated(walk, estimation.InvariantFilter(), estimation.Instruments(seed=1))
sim = legged.Simulation(robot, law, ground=legged.Rigid(terrain=terrain), integrator=legged.TimeStepping(2e-3))

pitch = 0.6  # [rad]
down = np.array([[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0], [-np.sin(pitch), 0, np.cos(pitch)]])
camera = DepthCamera(legged.Frame("trunk", at=(0.4, 0.0, 0.1), rotation=down), far=2.5)
seeing = controllers.Seeing(sim, camera)
seeing.step(n=1500)  # 3 s

seen = seeing.maps[0]
errors = seen.heights - terrain.height(*seen.centers())
near = np.isfinite(errors)
print(f"at x = {sim.q[4]:.2f} m, {'fallen' if sim.fallen else 'walking'}; {100 * near.mean():.0f} % of the cells seen")
print(f"median error {1000 * np.median(np.abs(errors[near])):.1f} mm")

figure = Figure(figsize=(11.0, 3.6), layout="constrained")
axes = figure.subplots(1, 3, sharey=True)
corner = seen.centers()[:, 0, 0]
extent = (corner[0], corner[0] + 100 * seen.spacing, corner[1], corner[1] + 100 * seen.spacing)
parts = {
    "seen by the camera, m": (seen.heights, (-0.3, 0.15)),
    "the terrain, m": (terrain.height(*seen.centers()), (-0.3, 0.15)),
    "standard deviation, m": (np.sqrt(seen.variance), (0.0, 0.02)),
}
for axis, (title, (values, (low, high))) in zip(axes, parts.items(), strict=True):
    picture = axis.imshow(values.T, origin="lower", extent=extent, vmin=low, vmax=high)
    axis.plot(*sim.q[4:6], "r^")
    axis.set(title=title, xlabel="x, m")
    figure.colorbar(picture, ax=axis, shrink=0.8)
axes[0].set_ylabel("y, m")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "seeing_walk.png", dpi=80)
print("wrote seeing_walk.png")
