"""How hard a push the balanced quadruped survives, and from where: a thousand pushed trots in one call."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import controllers
import legged
import robots
from legged.ground import realistic_ground

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/disturbance_map")
robot = robots.spatial_quadruped()
gait = controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
directions = np.linspace(0.0, 2 * np.pi, 48, endpoint=False)  # [rad], from +x towards +y: where the push goes
speeds = np.linspace(0.1, 1.2, 23)  # [m/s], what the push adds to the speed of the whole robot
angle, speed = (grid.ravel() for grid in np.meshgrid(directions, speeds))
impulses = robot.mass * speed[:, None] * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)  # [N s]

runs = legged.rollout(
    robot,
    controllers.Balanced(gait),
    ground=realistic_ground(robot, penetration=5e-3),  # [m]
    until=4.0,  # [s]
    integrator=legged.SemiImplicitEuler(step=1e-3),  # [s]
    sample=0.05,  # [s]
    pushes=[legged.Push("trunk", (0.0, 0.0, 0.0), at=0.8)],  # [s]
    vary={"pushes.0.impulse": impulses},
)
survived = ~runs.fallen.reshape(len(speeds), len(directions))
hardest = np.where(survived.all(axis=0), speeds[-1], speeds[np.argmin(survived, axis=0) - 1])
hardest[~survived[0]] = 0.0
print(f"{runs.engine}: {len(runs)} trots of {runs.times[-1]:g} s, {runs.fallen.sum()} fell")
print(f"survives {hardest.min():.1f} m/s from everywhere, {hardest.max():.1f} m/s from where it is strongest")

figure = Figure(figsize=(6.0, 6.0), layout="constrained")
ax = figure.add_subplot(projection="polar")
ends, steps = np.append(directions, 2 * np.pi) - np.pi / len(directions), np.diff(speeds)[0]
ax.pcolormesh(ends, np.append(speeds[0] - steps / 2, speeds + steps / 2), survived, cmap="RdYlBu", vmin=-0.2, vmax=1.2)
around = np.append(directions, directions[0])
ax.plot(around, np.append(hardest, hardest[0]) + steps / 2, color="black", linewidth=1.5)
ax.set_title(
    "A push in this direction, by this change of speed [m/s]:\nblue is survived, red ends in a fall; 0 is ahead"
)
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "disturbance_map.png", dpi=120)
print("wrote disturbance_map.png")
