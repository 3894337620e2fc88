"""A map of the pushes that a trotting quadruped survives, by size and direction: a thousand runs in one call."""

import sys
from pathlib import Path

import numpy as np

import controllers
import legged
import robots
from examples.studies.balance.disturbance_map import Pushes, SettlingCriterion, disturbance_map
from examples.studies.balance.disturbance_report import map_figure
from legged.ground import realistic_ground

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/disturbance_map")
robot = robots.spatial_quadruped()
gait = controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
pushes = Pushes(legged.Push("trunk", (0.0, 0.0, 0.0), at=0.8), np.linspace(1.2, 14.4, 23))  # [s], [N s]

mapped = disturbance_map(
    robot,
    controllers.Balanced(gait),
    pushes,
    directions=48,
    until=4.0,  # [s]
    settled=SettlingCriterion(position=np.inf, turn=0.2),  # [m], [rad]: any position, but level
    ground=realistic_ground(robot, penetration=5e-3),  # [m]
    integrator=legged.SemiImplicitEuler(step=1e-3),  # [s]
)
print(mapped.table().text())

folder.mkdir(parents=True, exist_ok=True)
map_figure(robot, mapped).savefig(folder / "disturbance_map.png", dpi=120)
mapped.write_csv(folder / "disturbance_map.csv")
print("wrote disturbance_map.png")
