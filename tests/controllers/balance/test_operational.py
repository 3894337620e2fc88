"""Operational-space control: tasks obey their own linear errors, and runs in which feet and trunk follow paths."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import OperationalSpaceControl, PointTask, PoseTask
from legged.errors import DefinitionError, ShapeError, UnknownNameError
from legged.ground import realistic_ground
from legged.rotations import euler_angles
from legged.simulation import Stiff

STIFF = Stiff(rtol=1e-5, atol=1e-7)
SHANK = (0.0, 0.0, -0.3)
FEET = ("leg1_foot", "leg2_foot", "leg3_foot", "leg4_foot")
STAND = controllers.Stand(hip_height=0.45)


def circle(center, radius=0.05, rate=4.0):
    """Return a path in the x-z plane that starts at rest on its center."""

    def path(t):
        grown = radius * (1 - np.exp(-3 * t)) ** 2
        return np.array([center[0] + grown * np.sin(rate * t), center[1], center[2] + grown * (1 - np.cos(rate * t))])

    return path


def started(robot):
    """Return the initial state of a standing robot, the positions of its feet, and that of its trunk."""
    q, v = STAND.on(robot).initial_state(robot)
    feet = legged.point_positions(robot, q, [(c.link, c.position) for c in robot.contacts])
    return q, v, feet, legged.link_poses(robot, q)[1][0]


def test_default_gains_damp_errors_critically():
    """A velocity gain of 2 sqrt(position gain): errors decay as fast as they can without oscillation."""
    pose = PoseTask("trunk", lambda t: np.zeros(3))
    for k, d in (PointTask("foot", lambda t: np.zeros(3)).gains, pose.gains, pose.orientation_gains):
        assert d == 2.0 * k**0.5


def test_each_task_obeys_its_own_error_whatever_the_others_do():
    """edd + K_d ed + K_p e = 0 of foot and trunk, from any state, on a robot with an actuated base."""
    robot = robots.spatial_quadruped()
    q, v, feet, trunk = started(robot)
    law = OperationalSpaceControl(
        STAND,
        tasks=(
            PoseTask("trunk", circle(trunk), lambda t: np.array([0.1 * t, 0.0, 0.2 * t * t])),
            PointTask("leg4_shank", circle(feet[3]), SHANK, gains=(300.0, 31.0)),
        ),
        standing=FEET[:3],
    )
    law, _ = law.start(robot, None, q, v)
    rng = np.random.default_rng(0)
    q = legged.integrate(robot, q, 0.03 * rng.normal(size=robot.nv))
    v = 0.1 * rng.normal(size=robot.nv)
    tau = law.torque(0.4, 0, q, v, np.zeros((len(robot.links), 6)), np.zeros(0))
    points = [(robot.contact(name).link, robot.contact(name).position) for name in FEET]
    rows = np.concatenate([legged.point_jacobian(robot, q, *point)[3:] for point in points])
    held, M = rows[:9], legged.inertia_matrix(robot, q)
    # Forces of the ground that keep the feet's accelerations at what the law asks, -20 of their speeds:
    rates = legged.point_accelerations(robot, q, v, np.zeros(robot.nv), points)[:3].reshape(-1)
    free = legged.forward_dynamics(robot, q, v, tau)
    f = np.linalg.solve(held @ np.linalg.solve(M, held.T), -20 * held @ v - rates - held @ free)
    vdot = free + np.linalg.solve(M, held.T @ f)
    foot = legged.point_accelerations(robot, q, v, vdot, points)[3]
    t, h = 0.4, 1e-4
    path = circle(feet[3])
    speed, bend = (path(t + h) - path(t - h)) / (2 * h), (path(t + h) - 2 * path(t) + path(t - h)) / h**2
    e, ed = path(t) - legged.point_positions(robot, q, points)[3], speed - rows[9:] @ v
    assert foot == pytest.approx(bend + 300 * e + 31 * ed, abs=1e-5)  # h^2 and rounding over h^2


def test_a_foot_of_a_held_robot_draws_its_path_while_the_others_stay():
    robot = robots.spatial_quadruped(legged.FixedBase())
    q, v, feet, _ = started(robot)
    path = circle(feet[3] + np.array([0, 0, 0.02]))
    law = OperationalSpaceControl(STAND, tasks=(PointTask("leg4_shank", path, SHANK),))
    run = legged.simulate(robot, law, until=1.5, q=q, v=v, integrator=STIFF)
    assert run.backend.startswith("compiled")
    contact = robot.contact("leg4_foot")
    where = np.array([legged.point_positions(robot, q, [(contact.link, contact.position)])[0] for q in run.q])
    wanted = np.array([path(t) for t in run.times])
    late = run.times > 0.75
    assert np.abs(where - wanted)[late].max() < 2e-4  # 2 cm at the start, 15 time constants of 1/20 s before
    assert np.ptp(wanted[late], axis=0).max() > 0.05
    assert np.abs(run.q[:, :9] - run.q[0, :9]).max() < 1e-6


def lean(t):
    """Return the displacement of a standing trunk, (3,), [m], towards its right hind leg."""
    return np.array([-0.1, -0.05, 0.02]) * (1 - np.exp(-5 * t)) ** 2


def turn(t):
    return np.array([0.05, -0.04, 0.06]) * (1 - np.exp(-5 * t)) ** 2


@pytest.fixture(scope="module")
def leaning():
    """Return a run of a quadruped on four feet whose trunk moves and turns."""
    robot = robots.spatial_quadruped()
    q, v, _, trunk = started(robot)
    law = OperationalSpaceControl(STAND, tasks=(PoseTask("trunk", lambda t: trunk + lean(t), turn),), standing=FEET)
    return legged.simulate(robot, law, until=1.5, q=q, v=v, ground=realistic_ground(robot), integrator=STIFF)


def test_the_trunk_of_a_standing_quadruped_follows_a_pose(leaning):
    robot = robots.spatial_quadruped()
    _, _, feet, trunk = started(robot)
    assert leaning.backend.startswith("compiled")
    for t, q in list(zip(leaning.times, leaning.q, strict=True))[50::20]:
        R, origins = legged.link_poses(robot, q)
        assert origins[0] == pytest.approx(trunk + lean(t), abs=2e-3)  # what the ground gives by as the load shifts
        assert euler_angles("zyx", R[0])[::-1] == pytest.approx(turn(t), abs=2e-3)
    slid = legged.point_positions(robot, leaning.q[-1], [(c.link, c.position) for c in robot.contacts]) - feet
    assert np.abs(slid).max() < 3e-3


@pytest.mark.slow
def test_a_foot_swings_while_three_stand(leaning):
    """With the trunk displaced, the center of mass is over the three standing feet."""
    robot, q = robots.spatial_quadruped(), leaning.q[-1]
    contact = robot.contact("leg4_foot")
    foot, trunk = legged.point_positions(robot, q, [(contact.link, contact.position), ("trunk", np.zeros(3))])
    angles = turn(leaning.times[-1])

    def lift(t):
        return foot + np.array([0.05, 0.0, 0.08]) * (1 - np.exp(-4 * t)) ** 4

    tasks = PoseTask("trunk", lambda t: trunk, lambda t: angles), PointTask("leg4_shank", lift, SHANK)
    law = OperationalSpaceControl(STAND, tasks=tasks, standing=FEET[:3])
    run = legged.simulate(robot, law, until=1.5, q=q, v=leaning.v[-1], ground=realistic_ground(robot), integrator=STIFF)
    ends = legged.point_positions(robot, run.q[-1], [(contact.link, contact.position), ("trunk", np.zeros(3))])
    assert ends[0] == pytest.approx(lift(1.5), abs=2e-3)
    assert ends[1] == pytest.approx(trunk, abs=2e-3)
    assert ends[0][2] - foot[2] > 0.07
    assert np.abs(run.contacts.forces[-1][3]).max() == 0.0
    assert run.contacts.forces[-1][:, 2].sum() == pytest.approx(9.81 * robot.mass, rel=1e-2)


def test_what_cannot_be_held_is_refused():
    robot = robots.spatial_quadruped()
    q, v, _, trunk = started(robot)

    def law(*tasks, standing=FEET, on=robot):
        OperationalSpaceControl(STAND, tasks=tasks, standing=standing).start(on, None, q[: on.nq], v[: on.nv])

    pose = PoseTask("trunk", lambda t: trunk)
    with pytest.raises(DefinitionError, match="use more feet"):
        law(pose, standing=FEET[:2])
    with pytest.raises(DefinitionError, match="needs a task"):
        law()
    with pytest.raises(UnknownNameError, match="no contact point named 'leg5_foot'"):
        law(pose, standing=(*FEET, "leg5_foot"))
    with pytest.raises(UnknownNameError, match="no link named 'hull'"):
        law(PoseTask("hull", lambda t: trunk))
    with pytest.raises(ShapeError, match="path of 'trunk' must return"):
        law(PoseTask("trunk", lambda t: trunk[2]))
    with pytest.raises(ShapeError, match="orientation of 'trunk' must return"):
        law(PoseTask("trunk", lambda t: trunk, lambda t: np.zeros(2)))
    with pytest.raises(DefinitionError, match="`standing` must be empty"):
        law(pose, on=robots.spatial_quadruped(legged.FixedBase()))
