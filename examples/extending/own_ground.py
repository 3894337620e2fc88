"""A user-defined terrain: height and normal of a surface of waves, with a compliant contact law."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import controllers
import legged
import robots
from legged.ground import Ground, HuntCrossley, VectorFriction


@dataclass(frozen=True)
class Waves:
    """A surface with sinusoidal waves along x."""

    height_of_crests: float = 0.01  # [m]
    length: float = 0.8  # [m]

    def height(self, x: Any, y: Any) -> Any:
        return self.height_of_crests * np.sin(2 * np.pi * x / self.length) + 0.0 * y

    def normal(self, x: Any, y: Any) -> np.ndarray:
        k = 2 * np.pi / self.length
        slope = self.height_of_crests * k * np.cos(k * x) + 0.0 * y
        up = 1 / np.sqrt(1 + slope * slope)
        return np.stack([-slope * up, 0.0 * up, up], axis=-1)


robot = robots.hexapod()
ground = Ground(HuntCrossley(stiffness=5e5, dissipation=2.0), VectorFriction(0.8, viscosity=500.0), Waves())
print(ground)

law = controllers.ComputedTorque(controllers.Tripod())
q, v = law.initial_state(robot)
q[6] += Waves().height_of_crests  # [m], so that no foot begins inside of a crest
run = legged.simulate(robot, law, q=q, v=v, ground=ground, until=2.0)
lean = np.degrees(np.abs(run.base.angles("xyz")[:, 1]).max())
print(
    f"ran {run.base.position[-1, 0] - run.base.position[0, 0]:.2f} m over the waves, pitching up to {lean:.1f} degrees"
)
