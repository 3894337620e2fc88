"""Fixed obstacles of every shape, with which contact points and bodies collide."""

from itertools import product

import numpy as np
import pytest

import legged
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, FreeBody, Hull, Rigid, Scene, Sphere
from legged.errors import DefinitionError, UnknownNameError

WEDGE = Hull([(x, y, z) for x, z in ((0, 0), (2, 0), (2, 0.4)) for y in (-0.5, 0.5)])
STEP = Box((1.0, 1.0, 0.2), (0.0, 0.0, 0.1))
RAMP = Box((4.0, 1.0, 0.2), (0.0, 3.0, 0.0), legged.rpy(0.0, 0.2, 0.0))


def ball(name="ball", **start):
    return FreeBody(name, legged.sphere_inertia(1.0, 0.1), [Sphere(0.1)], **start)


def names(scene):
    return [candidate.name for candidate in scene.candidates]


def stool():
    """Return a robot of one link on four points and a ball."""
    feet = {f"foot{k}": (x, y, -0.1) for k, (x, y) in enumerate([(0.1, 0.1), (0.1, -0.1), (-0.1, 0.1), (-0.1, -0.1)])}
    link = legged.Link("seat", legged.box_inertia(2.0, (0.2, 0.2, 0.2)), feet | {"ball": Sphere(0.05, (0, 0, -0.05))})
    return legged.RobotBuilder("stool", link).build()


def test_obstacles_collide_with_contact_points_and_bodies():
    ground = Rigid(obstacles=(("step", STEP), ("ramp", RAMP)))
    candidates = names(Scene.of(stool(), ground, [ball()]))
    feet = [*(f"foot{k}" for k in range(4)), "ball"]
    with pytest.raises(DefinitionError, match="obstacles step, step need names that differ"):
        Scene.of(stool(), Rigid(obstacles=(("step", STEP), ("step", STEP))))
    with pytest.raises(DefinitionError, match="obstacles ball need names that differ from each other, from links"):
        Scene.of(stool(), Rigid(obstacles=(("ball", STEP),)), [ball()])
    assert candidates == [
        *feet,
        "ball",
        *(f"{f}-{o}" for o in ("step", "ramp") for f in feet),
        "ball-step",
        "ball-ramp",
    ]
    pairs = (("step", "seat"), ("ball", "ramp"))
    ground = Rigid(obstacles=(("step", STEP), ("ramp", RAMP)), pairs=pairs)
    assert names(Scene.of(stool(), ground, [ball()])) == [*(f"{f}-step" for f in feet), "ball-ramp"]
    with pytest.raises(UnknownNameError, match="obstacle or terrain named 'stp'; did you mean 'step'"):
        Scene.of(stool(), Rigid(obstacles=(("step", STEP),), pairs=(("seat", "stp"),)))
    with pytest.raises(DefinitionError, match="'terrain' and 'step' are both fixed"):
        Scene.of(stool(), Rigid(obstacles=(("step", STEP),), pairs=(("step", "terrain"),)))


def test_robots_and_bodies_rest_on_obstacles():
    """The stool stands on the step, a sphere lies beside it, and a box sticks to the ramp, whose friction suffices."""
    turned = legged.rotations.quaternion_of(RAMP.rotation)
    brick = FreeBody(
        "brick", legged.box_inertia(1.0, (0.2, 0.2, 0.1)), [Box((0.2, 0.2, 0.1))],
        position=(0.15 * np.sin(0.2), 3.0, 0.15 * np.cos(0.2)), quaternion=turned,
    )  # fmt: skip
    marble = ball(position=(0.35, 0.35, 0.31))
    pairs = (("seat", "step"), ("ball", "step"), ("brick", "ramp"))
    ground = Rigid(friction=0.5, pairs=pairs, obstacles=(("step", STEP), ("ramp", RAMP)))
    run = legged.simulate(
        stool(), q=np.array([1.0, 0, 0, 0, 0, 0, 0.305]), until=0.4, ground=ground, bodies=[brick, marble], fall=False
    )
    assert abs(run.base.position[-1, 2] - 0.3) < 1e-4  # [m]
    assert abs(run.body("ball").position[-1, 2] - 0.3) < 1e-4
    np.testing.assert_allclose(run.body("brick").position[-1], brick.position, atol=1e-4)
    assert abs(run.ground_force[-1, 2] - 9.81 * 2.0) < 0.05  # [N], the weight of the stool
    corners = run.figure.nodes[:, -16:]
    np.testing.assert_array_equal(corners[0], np.concatenate([STEP.corners, RAMP.corners]))
    np.testing.assert_array_equal(corners[0], corners[-1])


SHAPES = (
    Sphere(0.2), Capsule(0.1, 0.3), Box((0.3, 0.2, 0.4)), Cylinder(0.2, 0.3), Ellipsoid((0.3, 0.2, 0.1)),
    Hull([(x, y, z) for x, z in ((-0.2, 0), (0.2, 0), (0.2, 0.3)) for y in (-0.2, 0.2)]),
)  # fmt: skip


@pytest.mark.parametrize(("one", "other"), list(product(SHAPES, SHAPES)), ids=lambda shape: type(shape).__name__)
def test_a_fixed_shape_has_the_contacts_of_a_body_at_rest(one, other):
    """At contact, with the normal from the obstacle to the body, in whatever order a pair of bodies has the shapes."""
    rng, inertia = np.random.default_rng(3), legged.box_inertia(1.0, (0.1, 0.1, 0.1))
    body, fixed = FreeBody("body", inertia, [one]), FreeBody("fixed", inertia, [other])
    rotation, place = legged.rpy(*rng.normal(size=3)), np.array([0.1, -0.2, 0.3])
    q, pairs = np.concatenate([legged.rotations.quaternion_of(rotation), place]), (("body", "fixed"),)
    moving = Scene.of(body.robot(), Rigid(pairs=pairs), [fixed])
    still = Scene.of(body.robot(), Rigid(obstacles=(("fixed", other.moved(rotation, place)),), pairs=pairs))
    sign, iterative = 1.0 if moving.candidates[0].first.robot == 0 else -1.0, _is_iterative(one, other)
    for _ in range(5):
        quaternion, away = rng.normal(size=4), rng.normal(size=3)
        quaternion /= np.linalg.norm(quaternion)
        center, least = place + away / np.linalg.norm(away), np.inf
        for _ in range(30):  # until the bodies touch
            expected = moving.contact_geometry([np.concatenate([quaternion, center]), q])
            nearest = expected.gap.argmin()
            least, normal = expected.gap[nearest], sign * expected.frame[nearest, 0]
            center = center - least * normal
        geometry = still.contact_geometry([np.concatenate([quaternion, center + least * normal])])
        nearest = geometry.gap.argmin()
        assert abs(least) < 1e-3 and abs(geometry.gap[nearest] - least) < (1e-5 if iterative else 1e-12)  # [m]
        np.testing.assert_allclose(geometry.frame[nearest, 0], normal, atol=1e-2 if iterative else 1e-12)


def _is_iterative(one, other):
    """Portal refinement ends within 1e-5 m of curved shapes, from a start that depends on the order of the shapes."""
    return isinstance(one, Cylinder | Ellipsoid | Hull) or isinstance(other, Cylinder | Ellipsoid | Hull)


@pytest.mark.parametrize("count", [1, 18])
def test_bodies_stick_to_a_wedge_and_lie_on_a_half_buried_cylinder(count):
    """In one kernel, and in parts with more candidates: the slope of the wedge is 0.2, below the friction."""
    slope = np.arctan(0.2)
    turned = legged.rotations.quaternion_of(legged.rpy(0.0, -slope, 0.0))
    normal, inertia = np.array([-np.sin(slope), 0.0, np.cos(slope)]), legged.box_inertia(1.0, (0.1, 0.06, 0.1))
    bricks = list[FreeBody]()
    for k in range(count):
        x, y = 1.0 + 0.15 * (k // 6), -0.4 + 0.15 * (k % 6)
        place = np.array([x, y, 0.2 * x]) + 0.05 * normal
        bricks.append(FreeBody(f"brick{k}", inertia, [Box((0.1, 0.06, 0.1))], position=place, quaternion=turned))
    log = Cylinder(0.2, 2.0, (0.0, 2.0, 0.0), legged.rpy(np.pi / 2, 0.0, 0.0))
    plank = FreeBody(
        "plank", legged.box_inertia(1.0, (0.4, 0.4, 0.02)), [Box((0.4, 0.4, 0.02))], position=(0.0, 2.0, 0.21)
    )
    pairs = (*((brick.name, "wedge") for brick in bricks), ("plank", "log"))
    ground = Rigid(friction=0.3, obstacles=(("wedge", WEDGE), ("log", log)), pairs=pairs)
    run = legged.simulate(
        stool(), q=np.array([1.0, 0, 0, 0, 9, 9, 9]), until=0.2, ground=ground, bodies=[*bricks, plank], fall=False,
        compiled=None if count > 6 else True,
    )  # fmt: skip
    assert ("parts" in run.backend) == (count > 6)
    for body in (*bricks, plank):
        np.testing.assert_allclose(run.body(body.name).position[-1], body.position, atol=2e-6)  # [m]
