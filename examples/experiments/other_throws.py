"""The thrown-block experiment with one parameter changed at a time: the person, the ground or the block."""

from dataclasses import replace

import robots
from examples.studies.balance.experiment import ORIENTATION, POSITION, BalanceExperiment, ThrownBlock, foot_events
from legged.table import Table
from robots.bipeds import FOOT, MASS, crouch


def experiment(mass: float = MASS, foot: float = FOOT) -> BalanceExperiment:
    robot = robots.spatial_biped(mass=mass, foot=foot)
    return BalanceExperiment(robot, crouch(robot), POSITION, ORIENTATION, duration=1.0)  # [s]


usual = experiment()
CASES = {
    "nothing": usual,
    "a person of 60 kg": experiment(mass=60.0),
    "a person of 75 kg": experiment(mass=75.0),
    "feet 10 % shorter": experiment(foot=0.9 * FOOT),
    "feet 10 % longer": experiment(foot=1.1 * FOOT),
    "restitution 0": replace(usual, restitution=0.0),
    "restitution 0.4": replace(usual, restitution=0.4),
    "friction 0.6": replace(usual, friction=0.6),
    "a block 0.03 m high": replace(usual, throw=ThrownBlock(size=(0.1, 0.1, 0.03))),  # [m]
    "a block 0.03 m wide": replace(usual, throw=ThrownBlock(size=(0.1, 0.03, 0.1))),
}


def row(name: str, case: BalanceExperiment) -> tuple[str, ...]:
    left, right = foot_events(case.robot, case.run, since=0.08)  # [s], when the block has hit
    landed = ", ".join(f"{foot.lands[0]:.3f}" for foot in (right, left))
    return name, f"{left.rises[0]:.3f}", landed, f"{1e3 * left.highest:.0f}"


header = ("changed", "heel rises [s]", "right, left land [s]", "highest heel [mm]")
table = Table("One thing changed at a time", header, tuple(row(*item) for item in CASES.items()))
print(table.markdown())
