"""A centipede: a trunk of equal segments, each with a pair of equal legs."""

from legged import Base, Inertia, Limb, Link, Revolute, Robot, RobotBuilder, rod_inertia
from legged.arguments import MOST_LINKS, whole
from legged.checked import checked

SEGMENT = Inertia(0.3, (-0.05, 0.0, 0.0), (1.6e-4, 3.7e-4, 3.7e-4))
SPACING = (-0.1, 0.0, 0.0)  # [m], from one segment to the next
WIDTH = 0.03  # [m], from the middle of the trunk to a hip


@checked
def centipede(pairs: int = 10, *, base: Base | None = None) -> Robot:
    """Return a centipede with 7 `pairs` - 1 joints: trunk joints about z, and legs with three joints each.

    The modules of the trunk are `segment1_`, `segment2_`, ... behind the head, those of the legs `left0_`, `right0_`,
    `left1_`, ... A leg has a hip joint about z, a hip joint and a knee about x, and a point foot.

    Args:
        pairs: Number of pairs of legs, one at the head and one at each segment behind it.
        base: Base type of the head; floating with a quaternion by default.
    """
    whole("pairs", pairs, least=1, most=MOST_LINKS // 7)
    robot = RobotBuilder(f"centipede with {pairs} pairs of legs", Link("head", SEGMENT), base=base)
    segment = Limb().add(Revolute("bend", "z"), Link("segment", SEGMENT))
    below = "head"
    for k in range(pairs):
        if k:
            robot.attach(segment, to=below, at=SPACING, prefix=f"segment{k}_")
            below = f"segment{k}_segment"
        for side, sign in (("left", 1.0), ("right", -1.0)):
            robot.attach(_leg(sign), to=below, at=(-0.05, sign * WIDTH, 0.0), prefix=f"{side}{k}_")
    return robot.build()


def _leg(sign: float) -> Limb:
    """Return a left leg for sign 1, a right leg for sign -1."""
    coxa, femur, tibia = (0.0, sign * 0.02, 0.0), (0.0, sign * 0.05, 0.02), (0.0, sign * 0.02, -0.08)
    return (
        Limb()
        .add(Revolute("swing", "z"), Link("coxa", rod_inertia(0.01, (0, 0, 0), coxa)))
        .add(Revolute("lift", "x"), Link("femur", rod_inertia(0.02, (0, 0, 0), femur)), at=coxa)
        .add(Revolute("knee", "x"), Link("tibia", rod_inertia(0.02, (0, 0, 0), tibia), {"foot": tibia}), at=femur)
    )
