"""A ball on a spring that is too stiff for its time step, whose energy comes from no source."""

from dataclasses import dataclass

import legged
from legged.ground import VectorFriction
from legged.ground.ground import Ground

STEP = 0.01  # [s]


@dataclass(frozen=True)
class AdhesiveSpring:
    """A normal force that also pulls; h sqrt(k / m) = 2.001 is beyond the limit of semi-implicit steps, 2."""

    stiffness: float = (2.001 / STEP) ** 2  # [N/m], for 1 kg

    def force(self, penetration, rate):
        return self.stiffness * penetration

    def rest_penetration(self, load):
        return load / self.stiffness


def ball():
    """Return a ball of 1 kg on a vertical rail."""
    mass = legged.Link("mass", legged.point_mass(1.0), contacts={"tip": (0.0, 0.0, 0.0)})
    builder = legged.RobotBuilder("ball", legged.Link("rail"), base=legged.FixedBase())
    return builder.add(legged.Prismatic("slide", "z"), mass, to="rail").build()


OPTIONS = {
    "q": [0.1],
    "ground": Ground(AdhesiveSpring(), VectorFriction(0.5, 1.0)),
    "integrator": legged.SemiImplicitEuler(STEP),
}
