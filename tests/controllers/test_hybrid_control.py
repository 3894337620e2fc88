"""Hybrid control: exact forces on faces at rest, motions that no environment disturbs, and measured accelerations."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import FaceContact, HybridControl, PointTask, PoseTask
from examples.studies.balance.hybrid_scenes import (
    GANTRY_FORCE,
    arm_on_faces,
    first_configuration,
    floor_force,
    gantry,
    gantry_path,
    gantry_run,
    six_axis_arm,
    tool_control,
    tool_position,
    wall_force,
)
from legged import loops
from legged.errors import DefinitionError, UnknownNameError

FEET = ("leg1_foot", "leg2_foot", "leg3_foot")
SHANK = (0.0, 0.0, -0.3)


def forces_of(closed, run):
    """Return the contact forces of a run, (T, c), [N]."""
    states = zip(run.q, run.v, run.tau, strict=True)
    return np.array([loops.solve(closed, *state).multipliers for state in states])


@pytest.fixture(scope="module")
def shaken():
    """Return the gantry, and its run on a plate that is shaken."""
    return gantry_run()


def test_a_vibrating_face_leaves_the_motion_at_rounding_and_disturbs_the_force(shaken):
    """The inertia of the gantry is constant, so that the motion in its subspace has coordinates: T^T M q."""
    closed, shaken = shaken
    _, still = gantry_run(shaking=0.0)
    robot = gantry()
    M, J = legged.inertia_matrix(robot, np.zeros(3)), legged.point_jacobian(robot, np.zeros(3), "tip")[3:]
    T = np.linalg.svd(J[2:])[2][1:].T
    assert np.abs((shaken.q - still.q)[:, :3] @ M @ T).max() < 1e-13  # [kg m]
    desired = np.array([np.linalg.solve(J, gantry_path(t)) for t in shaken.times])
    assert np.abs((shaken.q[:, :3] - desired) @ M @ T).max() < 1e-9  # of the integration
    assert np.abs((shaken.q - still.q)[:, :3]).max() > 1e-3  # the face carries the tip along M^-1 J^T
    assert np.abs(forces_of(closed, still) - GANTRY_FORCE).max() < 1e-9
    assert np.abs(forces_of(closed, shaken) - GANTRY_FORCE).max() > 3.0


def test_the_measured_acceleration_removes_the_force_error_in_proportion_to_the_time_step(shaken):
    runs = [shaken, *(gantry_run(True, step) for step in (1e-3, 2.5e-4))]
    errors = [np.abs(forces_of(*run) - GANTRY_FORCE)[20:].max() for run in runs]  # without the transient at the start
    assert errors[1] < 0.15 * errors[0]  # the mean of the last step is 1.5 steps old at its end: 60 rad/s times 1.5 ms
    assert errors[2] == pytest.approx(errors[1] / 4.0, rel=0.1)


@pytest.fixture(scope="module")
def leaning():
    """Return (law, robot, q, v): a quadruped on three feet whose fourth presses on a wall."""
    robot = robots.spatial_quadruped()
    stand = controllers.Stand(hip_height=0.45)
    q, v = stand.on(robot).initial_state(robot)
    trunk = legged.link_poses(robot, q)[1][0]
    foot = legged.point_positions(robot, q, [("leg4_shank", np.array(SHANK))])[0]
    law = HybridControl(
        stand,
        tasks=(
            PoseTask("trunk", lambda t: trunk + np.stack([0.1 * t, 0.02 * t * t, 0.0 * t])),
            PointTask("leg4_shank", lambda t: foot + np.stack([0.0 * t, 0.1 * t, 0.3 * t]), SHANK),
        ),
        standing=FEET,
        contacts=(FaceContact("leg4_shank", SHANK, (-1.0, 0.0, 0.0), lambda t: 20.0 + t),),
    )
    return law.start(robot, None, q, v)[0], robot, q


@pytest.mark.parametrize("slip", [0.0, 0.05])
def test_a_quadruped_on_three_feet_presses_with_the_force_and_moves_its_trunk_and_foot(leaning, slip):
    """At a state on the paths, with the four contacts held, motors at the joints alone give both.

    Feet that slip, [m/s], are brought to rest by foot times their velocity, and disturb neither force nor paths.
    """
    law, robot, q = leaning
    points = [(robot.contact(name).link, robot.contact(name).position) for name in (*FEET, "leg4_foot")]
    J = np.concatenate([legged.point_jacobian(robot, q, *point)[3:] for point in points])
    held = np.concatenate([J[:9], -J[9:10]])
    trunk = legged.point_jacobian(robot, q, "trunk")
    rows = np.concatenate([held, trunk, J[10:]])
    t = 0.0
    feet = slip * np.random.default_rng(0).normal(size=9)
    v = np.linalg.solve(rows, np.concatenate([feet, np.zeros(4), [0.1, 0.0, 0.0], [0.1, 0.3]]))
    tau = law.torque(t, 0, q, v, np.zeros((9, 6)), np.zeros(0))
    assert np.array_equal(tau[:6], np.zeros(6))
    rates = legged.point_accelerations(robot, q, v, np.zeros(18), points).reshape(-1)
    still = -np.concatenate([rates[:9] + law.foot * feet, -rates[9:10]])
    M, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v)
    system = np.block([[M, -held.T], [held, np.zeros((10, 10))]])
    solution = np.linalg.solve(system, np.concatenate([tau - h, still]))
    vdot, forces = solution[:18], solution[18:]
    assert forces[9] == pytest.approx(20.0, abs=1e-9)
    if not slip:  # the trunk accelerates a little
        assert forces[[2, 5, 8]].sum() == pytest.approx(robot.mass * 9.81, rel=0.02)
    moved = legged.point_twist_rates(robot, q, v, vdot, [("trunk", np.zeros(3)), points[3]])
    assert moved[0] == pytest.approx([0, 0, 0, 0, 0.04, 0], abs=1e-9)
    assert moved[1, 4:] == pytest.approx([0, 0], abs=1e-9)


def test_a_law_that_cannot_be_is_refused(leaning):
    law, robot, q = leaning
    with pytest.raises(DefinitionError, match="unit vector"):
        FaceContact("tool", (0.0, 0.0, 0.0), (1.0, 1.0, 0.0), 1.0)
    gait, tasks = controllers.Stand(hip_height=0.45), law.tasks
    with pytest.raises(DefinitionError, match="needs a contact"):
        HybridControl(gait, tasks, FEET).start(robot, None, q, np.zeros(18))
    unknown = FaceContact("leg5_shank", SHANK, (1.0, 0.0, 0.0), 1.0)
    with pytest.raises(UnknownNameError, match="leg5_shank"):
        HybridControl(gait, tasks, FEET, contacts=(unknown,)).start(robot, None, q, np.zeros(18))


@pytest.mark.slow
def test_an_arm_holds_two_face_vertex_contacts_while_it_turns_its_tool():
    arm, q = six_axis_arm(), first_configuration()
    closed = arm_on_faces(arm)
    integrator = legged.RungeKutta4(step=1e-3)
    run = legged.simulate(closed, tool_control(), until=1.0, q=q, v=np.zeros(6), integrator=integrator)
    desired = np.array([[floor_force(t), wall_force(t)] for t in run.times])
    assert np.abs(forces_of(closed, run) - desired).max() < 1e-9
    positions = np.array([legged.frame_pose(arm, q, "tool").position for q in run.q])
    assert np.abs(positions - [tool_position(t) for t in run.times]).max() < 1e-9  # the error at the start
    assert np.ptp(positions, axis=0).min() > 0.01
