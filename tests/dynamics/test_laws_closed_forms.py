"""Robots with closed-form equations of motion. Both sides take a few operations, so that 1e-12 covers rounding."""

import numpy as np
import pytest

import legged
from benchmarks.studies.conditioning import point_mass_chain, straight_condition
from legged import Link, Prismatic, Revolute, RobotBuilder, Spherical
from legged.errors import DefinitionError
from legged.rotations import axis_matrix

G = 9.81
ROUNDING = 1e-12


def pendulum(inertia, axis="y"):
    return (
        RobotBuilder("pendulum", Link("wall"), base=legged.FixedBase())
        .add(Revolute("pin", axis), Link("bob", inertia), to="wall", at=(0.3, 0.2, 1.0))
        .build()
    )


def test_point_pendulum():
    m, l, q, v, a = 1.7, 0.6, 0.8, 2.3, -1.1
    robot = pendulum(legged.point_mass(m, (0, 0, -l)))
    tau = legged.inverse_dynamics(robot, [q], [v], [a])
    # a rotation about +y moves the bob towards -x; its height is -l cos q
    assert tau == pytest.approx([m * l**2 * a + m * G * l * np.sin(q)], rel=ROUNDING)
    assert legged.inertia_matrix(robot, [q]) == pytest.approx(np.array([[m * l**2]]), rel=ROUNDING)
    assert legged.forward_dynamics(robot, [q], [v], [0.0]) == pytest.approx([-G / l * np.sin(q)], rel=ROUNDING)
    assert legged.potential_energy(robot, [q]) == pytest.approx(m * G * (1.0 - l * np.cos(q)), rel=ROUNDING)


def test_rod_pendulum_swings_as_a_point_at_two_thirds_of_its_length():
    l, q = 0.9, 1.2
    robot = pendulum(legged.rod_inertia(2.0, (0, 0, 0), (0, 0, -l)))
    assert legged.forward_dynamics(robot, [q], [0.0], [0.0]) == pytest.approx(
        [-G / (2 * l / 3) * np.sin(q)], rel=ROUNDING
    )


def test_two_link_arm():
    """The two-link arm in a vertical plane; angles from the vertical, the second relative to the first."""
    m1, m2, l1, l2 = 1.3, 0.7, 0.5, 0.4
    arm = (
        RobotBuilder("arm", Link("wall"), base=legged.FixedBase())
        .add(Revolute("shoulder", "-y"), Link("upper", legged.rod_inertia(m1, (0, 0, 0), (0, 0, -l1))), to="wall")
        .add(
            Revolute("elbow", "-y"),
            Link("fore", legged.rod_inertia(m2, (0, 0, 0), (0, 0, -l2))),
            to="upper",
            at=(0, 0, -l1),
        )
        .build()
    )
    (q1, q2), (w1, w2), a = (0.4, -1.3), (1.9, -0.6), np.array([2.1, -3.3])
    c, s = np.cos(q2), np.sin(q2)
    inertia = np.array(
        [
            [m1 * l1**2 / 3 + m2 * (l1**2 + l2**2 / 3 + l1 * l2 * c), m2 * (l2**2 / 3 + l1 * l2 / 2 * c)],
            [m2 * (l2**2 / 3 + l1 * l2 / 2 * c), m2 * l2**2 / 3],
        ]
    )
    k = m2 * l1 * l2 / 2 * s
    coriolis = np.array([-k * (2 * w1 * w2 + w2**2), k * w1**2])
    low = m2 * G * l2 / 2 * np.sin(q1 + q2)
    weight = np.array([(m1 / 2 + m2) * G * l1 * np.sin(q1) + low, low])
    assert legged.inertia_matrix(arm, [q1, q2]) == pytest.approx(inertia, rel=ROUNDING)
    tau = legged.inverse_dynamics(arm, [q1, q2], [w1, w2], a)
    assert tau == pytest.approx(inertia @ a + coriolis + weight, rel=ROUNDING)
    assert legged.forward_dynamics(arm, [q1, q2], [w1, w2], tau) == pytest.approx(a, rel=ROUNDING)


def test_cart_and_pole():
    M, m, l, theta, w = 3.0, 0.5, 0.8, 0.7, -1.4
    robot = (
        RobotBuilder("cart and pole", Link("rail"), base=legged.FixedBase())
        .add(Prismatic("slide", "x"), Link("cart", legged.point_mass(M)), to="rail")
        .add(Revolute("hinge", "-y"), Link("pole", legged.point_mass(m, (0, 0, -l))), to="cart")
        .build()
    )
    q, v = [0.2, theta], [0.9, w]
    c, s = np.cos(theta), np.sin(theta)  # the bob is at x + l sin theta, -l cos theta
    inertia = np.array([[M + m, m * l * c], [m * l * c, m * l**2]])
    assert legged.inertia_matrix(robot, q) == pytest.approx(inertia, rel=ROUNDING)
    h = [-m * l * s * w**2, m * G * l * s]
    assert legged.bias_forces(robot, q, v) == pytest.approx(h, rel=ROUNDING)


def test_free_body_turns_by_eulers_equations_and_falls():
    body = legged.box_inertia(2.0, (0.3, 0.5, 0.9))
    robot = RobotBuilder("brick", Link("brick", body)).build()
    q = legged.FloatingBase().configuration(np.array([1.0, 2.0, 3.0]), legged.rpy(0.2, 0.9, -0.4))
    omega, velocity = np.array([1.1, -2.0, 0.4]), np.array([0.3, 0.1, -0.8])
    vdot = legged.forward_dynamics(robot, q, np.concatenate([omega, velocity]), np.zeros(6))
    I = np.diag(body.tensor)
    assert vdot[:3] == pytest.approx([(I[i - 2] - I[i - 1]) * omega[i - 2] * omega[i - 1] / I[i] for i in range(3)])
    # velocity components in rotating axes: their rate is gravity minus omega x velocity
    R, _ = robot.base.pose(q)
    assert vdot[3:] == pytest.approx(R.T @ [0, 0, -G] - np.cross(omega, velocity), rel=ROUNDING)


def test_a_nut_runs_down_a_thread_with_the_inertia_of_its_rotation_and_translation():
    """Each radian lowers it by the pitch: (I + m h^2) qdd = -m g h, and q is not a function of the frame's pose."""
    m, inertia, pitch = 0.8, 3e-4, -0.02
    nut = legged.Link("nut", legged.Inertia(m, (0.0, 0.0, 0.1), (0.1, 0.1, inertia)))
    builder = legged.RobotBuilder("thread", legged.Link("rod"), base=legged.FixedBase())
    robot = builder.add(legged.Screw("thread", "z", pitch=pitch), nut, to="rod", at=(0.1, 0.2, 0.3)).build()
    vdot = legged.forward_dynamics(robot, [7.0], [2.0], [0.0])
    assert vdot == pytest.approx([-m * 9.81 * pitch / (inertia + m * pitch**2)], rel=1e-12)
    R, o = legged.frame_pose(robot, [7.0], "nut")
    assert o == pytest.approx([0.1, 0.2, 0.3 + 7.0 * pitch], abs=1e-14)
    assert pytest.approx(axis_matrix("z", 7.0), abs=1e-14) == R
    locked = robot.locked({"thread": 7.0})
    for one, other in zip(legged.frame_pose(locked, [], "nut"), (R, o), strict=True):
        assert one == pytest.approx(other, abs=1e-14)
    with pytest.raises(DefinitionError, match="screw joint 'thread' has a pitch of zero: use a revolute"):
        legged.Screw("thread", pitch=0.0)


def test_centrifugal_and_coriolis_forces_of_a_prismatic_joint_on_a_rotating_arm():
    m, r, w, rate = 0.8, 0.7, 3.0, -0.5
    robot = (
        RobotBuilder("bead on a turning wire", Link("table"), base=legged.FixedBase(), gravity=(0, 0, 0))
        .add(Revolute("turn", "z"), Link("wire"), to="table")
        .add(Prismatic("slide", "x"), Link("bead", legged.point_mass(m)), to="wire")
        .build()
    )
    h = legged.bias_forces(robot, [0.4, r], [w, rate])
    assert h == pytest.approx([2 * m * r * rate * w, -m * r * w**2], rel=ROUNDING)


def test_fast_top_on_a_ball_joint_precesses_steadily():
    """Steady precession of a heavy symmetric top: (I_3 w_3 - I_1 W cos(tilt)) W = m g l."""
    m, l, tilt, W = 1.5, 0.4, 0.6, 2.0
    top = legged.Inertia(m, (0, 0, l), (0.02, 0.02, 0.03))
    robot = (
        RobotBuilder("top", Link("floor"), base=legged.FixedBase())
        .add(Spherical("tip"), Link("top", top), to="floor")
        .build()
    )
    I1, I3 = 0.02 + m * l**2, 0.03
    spin = (m * G * l / W + I1 * W * np.cos(tilt)) / I3  # omega_3, about the top's own axis
    q = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0])
    omega = np.array([0.0, W * np.sin(tilt), spin])
    relative = spin - W * np.cos(tilt)  # spin rate of the top in the precessing frame
    vdot = legged.forward_dynamics(robot, q, omega, np.zeros(3))
    assert vdot == pytest.approx(relative * np.array([W * np.sin(tilt), 0.0, 0.0]), abs=1e-10)


def test_planar_base_carries_a_hanging_leg():
    """A planar base with a leg that is a point mass; x, z and both angles from Lagrange's equations."""
    M, J, m, l = 4.0, 0.3, 1.0, 0.5
    body = legged.Inertia(M, (0, 0, 0), (J, J, J))
    robot = (
        RobotBuilder("swing", Link("body", body), base=legged.PlanarBase())
        .add(Revolute("hip", "y"), Link("leg", legged.point_mass(m, (0, 0, -l))), to="body")
        .build()
    )
    phi, theta = 0.3, -0.9
    c, s = np.cos(phi + theta), np.sin(phi + theta)  # the foot is at x - l s, z - l c
    lx, lz, ll = -m * l * c, m * l * s, m * l**2
    inertia = [[J + ll, lx, lz, ll], [lx, M + m, 0, lx], [lz, 0, M + m, lz], [ll, lx, lz, ll]]
    assert legged.inertia_matrix(robot, [phi, 0.1, 0.2, theta]) == pytest.approx(np.array(inertia), abs=ROUNDING)
    w = 1.2 - 0.5
    h = np.array([m * G * l * s, m * l * s * w**2, m * l * c * w**2 + (M + m) * G, m * G * l * s])
    assert legged.bias_forces(robot, [phi, 0.1, 0.2, theta], [1.2, 3.0, -2.0, -0.5]) == pytest.approx(h, abs=1e-11)


def test_a_standing_robots_feet_carry_its_weight():
    import robots

    robot = robots.spatial_quadruped()
    q, still = robot.neutral(), np.zeros(18)
    q[6] = 0.6
    share = robot.mass * G / 4
    wrenches = {f"leg{i}_shank": [0, 0, 0, 0, 0, share] for i in (1, 2, 3, 4)}  # straight legs: feet below the hips
    tau = legged.inverse_dynamics(robot, q, still, still, wrenches)
    assert tau == pytest.approx(np.zeros(18), abs=1e-11)


def test_a_straight_chain_is_conditioned_as_a_cantilever_beam():
    """The condition number grows with N^4; the next term of the asymptotic formula is of relative order 1 / N^2."""
    for n in (8, 16, 24):
        M = legged.inertia_matrix(point_mass_chain(n), np.zeros(n))
        assert np.linalg.cond(M) == pytest.approx(straight_condition(n), rel=6.0 / n**2)
    fourth = np.linalg.inv(M)[4:-4, 4:-4]  # inside, the inverse has the rows of fourth differences
    assert fourth[4, 2:7] == pytest.approx([1.0, -4.0, 6.0, -4.0, 1.0], abs=1e-9)
