"""Falls: what counts as one does not depend on the frame of the base, and its limits are those of the trunk."""

import numpy as np
import pytest

import controllers
import legged
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, Hull, Rigid, Sphere
from legged.errors import DefinitionError, SimulationError, UnknownNameError
from legged.ground import realistic_ground
from legged.simulation import Fall

STEP = legged.TimeStepping(2e-3)
BODY = (0.4, 0.3, 0.2)


def block(origin, shapes=True):
    """A block of which the base frame is at `origin`, (3,), [m], from its center, with feet at its lower corners."""
    center = -np.asarray(origin)
    feet = {f"{x}{y}": center + np.array([x * 0.2, y * 0.15, -0.1]) for x in (-1, 1) for y in (-1, 1)}
    inertia = legged.Inertia(3.0, center, np.diag([0.03, 0.05, 0.06]))
    own = [Box(BODY, center)] if shapes else []
    return legged.RobotBuilder("block", legged.Link("block", inertia, feet, own)).build()


def standing(robot, origin, height=0.1):
    q = robot.neutral()
    q[4:] = np.asarray(origin) + np.array([0.0, 0.0, height])
    return q


@pytest.mark.parametrize("origin", [(0, 0, 0), (0, 0, -0.1), (0, 0, -0.3), (0.5, 0, 0.4)])
@pytest.mark.parametrize("ground", [Rigid(), realistic_ground])
def test_a_standing_block_never_falls_wherever_its_base_frame_is(origin, ground):
    robot = block(origin)
    ground = ground(robot) if callable(ground) and not isinstance(ground, Rigid) else ground
    options = {"ground": ground, "until": 0.1, "q": standing(robot, origin)}
    assert legged.simulate(robot, **options).ended == ""
    runs = legged.rollout(robot, v=np.zeros((2, robot.nv)), **options)
    assert not runs.fallen.any()


@pytest.mark.parametrize("origin", [(0, 0, 0), (0, 0, -0.3)])
def test_height_is_that_of_the_center_of_mass_of_the_trunk(origin):
    """A block without feet falls freely from 1 m: it passes half the height after sqrt(2 0.5 m / g)."""
    link = legged.Link("block", legged.Inertia(3.0, -np.asarray(origin), np.diag([0.03, 0.05, 0.06])))
    robot = legged.RobotBuilder("block", link).build()
    options = {"ground": Rigid(), "until": 1.0, "q": standing(robot, origin, 1.0), "integrator": STEP}
    with pytest.raises(
        SimulationError, match=r"fell below 0\.5 m, 0\.5 of its initial height \(Fall\.height\)"
    ) as error:
        legged.simulate(robot, fall=Fall(height=0.5), sample=2e-3, **options)
    assert error.value.run.duration == pytest.approx(np.sqrt(1.0 / 9.81), abs=2 * 2e-3)
    simulation = legged.Simulation(robot, fall=Fall(height=0.5), ground=Rigid(), q=options["q"], integrator=STEP)
    for _ in range(400):
        simulation.step()
    assert simulation.fallen and "Fall.height" in simulation.reasons[0]


def test_a_base_without_height_has_no_limit_of_height():
    """A massless base on the ground, whose mass is beyond a joint, does not fall at once."""
    trunk = legged.Limb().add(
        legged.Prismatic("lift", "z"), legged.Link("trunk", legged.sphere_inertia(2.0, 0.1)), at=(0, 0, 0.3)
    )
    feet = {f"{x}{y}": (0.2 * x, 0.2 * y, 0.0) for x in (-1, 1) for y in (-1, 1)}
    base = legged.Link("footprint", legged.box_inertia(1e-3, (0.1, 0.1, 0.1)), feet)
    robot = legged.RobotBuilder("footprint", base).attach(trunk, to="footprint").build()
    assert Fall().limits(robot, Rigid(), robot.neutral()).bases[0].lowest == -np.inf
    law = controllers.JointPD(controllers.Posture([0.0]), kp=2000.0, kd=50.0)
    assert legged.simulate(robot, law, ground=Rigid(), until=0.2, integrator=STEP).ended == ""


SHAPES = {
    "sphere": Sphere(0.1, (0.1, 0.0, 0.2)),
    "box": Box((0.2, 0.3, 0.4), (0.1, 0.0, 0.2), legged.rpy(0.3, 0.2, 0.1)),
    "capsule": Capsule(0.05, 0.3, (0.1, 0.0, 0.2), legged.rpy(0.3, 0.2, 0.1)),
    "cylinder": Cylinder(0.05, 0.3, (0.1, 0.0, 0.2), legged.rpy(0.3, 0.2, 0.1)),
    "ellipsoid": Ellipsoid((0.1, 0.2, 0.15), (0.1, 0.0, 0.2), legged.rpy(0.3, 0.2, 0.1)),
    "hull": Hull(np.random.default_rng(0).normal(size=(12, 3)) * 0.1),
}


def lowest(shape):
    """Return the height of the lowest point of a shape, [m], in closed form."""
    if isinstance(shape, Hull):
        return np.min(np.array(shape.vertices)[:, 2])
    across = np.asarray(getattr(shape, "rotation", np.eye(3)))[2]  # components of the vertical in the axes of the shape
    if isinstance(shape, Sphere):
        reach = shape.radius
    elif isinstance(shape, Box):
        reach = np.abs(across) @ np.asarray(shape.size) / 2
    elif isinstance(shape, Ellipsoid):
        reach = np.linalg.norm(across * np.asarray(shape.radii))
    elif isinstance(shape, Capsule):
        reach = abs(across[2]) * shape.length / 2 + shape.radius
    else:
        reach = abs(across[2]) * shape.length / 2 + shape.radius * np.hypot(*across[:2])
    return shape.center[2] - reach


@pytest.mark.parametrize("kind", SHAPES)
def test_a_link_of_contacts_that_reaches_the_ground_ends_the_run(kind):
    """The lowest point of a link that falls freely from a height reaches the ground after sqrt(2 height / g).

    A cylinder counts with sixteen sides, up to 1 mm inside it, an ellipsoid with the box around it.
    """
    shape = SHAPES[kind]
    link = legged.Link("trunk", legged.sphere_inertia(1.0, 0.1), shapes=[shape])
    robot = legged.RobotBuilder("thrown", link).build()
    fall = Fall(height=-1.0, contacts=["trunk"])  # no other limit
    options = {"integrator": legged.TimeStepping(1e-4), "sample": 1e-4, "ground": Rigid(), "until": 1.0}
    with pytest.raises(SimulationError, match=r"link 'trunk' touched the ground \(Fall\.contacts\)") as error:
        legged.simulate(robot, q=standing(robot, (0, 0, 0), 1.0), fall=fall, **options)
    early, late = {"ellipsoid": (0.2, 0.0), "cylinder": (0.0, 1e-3)}.get(kind, (0.0, 0.0))
    first, last = (np.sqrt(2 * (1.0 + lowest(shape) + d) / 9.81) for d in (-early, late))
    assert first - 2e-4 <= error.value.run.duration <= last + 2e-4  # two time steps


def test_names_of_contacts_are_checked_before_the_run():
    robot = block((0, 0, 0), shapes=False)
    options = {"ground": Rigid(), "until": 0.1, "q": standing(robot, (0, 0, 0))}
    with pytest.raises(UnknownNameError, match="blok"):
        legged.simulate(robot, fall=Fall(contacts=["blok"]), **options)
    with pytest.raises(DefinitionError, match="no collision shapes"):
        legged.simulate(robot, fall=Fall(contacts=["block"]), **options)


def test_contacts_are_checked_in_every_member_of_a_compiled_rollout():
    link = legged.Link("trunk", legged.sphere_inertia(1.0, 0.1), shapes=[Sphere(0.1)])
    robot = legged.RobotBuilder("ball", link).build()
    q = np.stack([standing(robot, (0, 0, 0), height) for height in (0.3, 2.0)])
    fall = Fall(height=0.0, contacts=["trunk"])
    runs = legged.rollout(robot, q=q, ground=Rigid(), until=0.4, fall=fall, integrator=STEP)
    assert runs.fallen.tolist() == [True, False]
    assert "Fall.contacts" in runs.reasons[0]


@pytest.mark.parametrize("compiled", [True, False])
def test_each_member_tilts_from_its_own_start(compiled):
    """A ball that starts turned by 1 rad has not fallen by 0.5 rad, although one that starts upright would have."""
    robot = legged.RobotBuilder("ball", legged.Link("trunk", legged.sphere_inertia(1.0, 0.1))).build()
    q = np.stack([standing(robot, (0, 0, 0), 1.0)] * 2)
    q[1, :4] = np.cos(0.5), np.sin(0.5), 0.0, 0.0
    v = np.zeros((2, robot.nv))
    assert not legged.rollout(robot, q=q, v=v, until=0.02, fall=Fall(tilt=0.5), compiled=compiled).fallen.any()


@pytest.mark.parametrize("height, falls", [(0.2, False), (0.1, True)])
def test_a_commanded_crouch_is_no_fall_down_to_the_limit(height, falls):
    """A trunk 0.5 m above its foot is lowered by a servo: to 0.4 of its height, and to 0.2, below the limit of 0.3."""
    corners = {f"{x}{y}": (0.1 * x, 0.1 * y, 0.0) for x in (-1, 1) for y in (-1, 1)}
    foot = legged.Link("foot", legged.box_inertia(1.0, (0.2, 0.2, 0.02)), corners)
    trunk = legged.Link("trunk", legged.box_inertia(4.0, (0.2, 0.2, 0.1)))
    robot = legged.RobotBuilder("lift", trunk).add(legged.Prismatic("leg", "z"), foot, to="trunk").build()
    q = robot.neutral()
    q[6], q[7] = 0.5, -0.5

    def lower(t, q, v, wrenches):
        return np.stack([-4.0 * 9.81 + 400.0 * (-height - q[7]) - 80.0 * v[6]])

    options = {"ground": Rigid(), "q": q, "until": 1.5, "integrator": legged.TimeStepping(1e-3)}
    if falls:
        with pytest.raises(SimulationError, match=r"fell below 0\.15 m, 0\.3 of its initial height \(Fall\.height\)"):
            legged.simulate(robot, lower, **options)
    else:
        assert legged.simulate(robot, lower, **options).q[-1, 6] == pytest.approx(height, abs=1e-3)  # settles in 0.1 s
