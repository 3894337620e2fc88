"""Loose grasps, internal forces and their control, and inverse kinematics by the spatial operators."""

import numpy as np
import pytest
from oracles.looped import two_arms

import legged
import robots
from legged.algorithms import operators as soa
from legged.errors import ArgumentError, ShapeError, UnknownNameError
from legged.rotations import quaternion_exp, quaternion_matrix

LOOSE = ("line", "soft finger", "point", "sliding")
MASS, CENTER = 3.0, np.array([0.05, 0.1, -0.2])
TIPS = [("left_link6", np.array([0, 0, 0.3])), ("right_link6", np.array([0.1, 0, 0.2]))]
STEP = 1e-5  # [s]; errors of central differences are 1e-10 of the third derivatives, and rounding 1e-10


def rotation(vector):
    return quaternion_matrix(quaternion_exp(np.asarray(vector, float)))


def carried(held, place):
    """Return the twist of the body's point at a place, (6,), [omega; velocity], world axes."""
    return np.concatenate([held.omega, held.velocity + np.cross(held.omega, place - held.position)])


def directions(contacts):
    H = np.zeros((sum(len(c.directions) for c in contacts), 6 * len(contacts)))
    row = 0
    for k, contact in enumerate(contacts):
        H[row : row + len(contact.directions), 6 * k : 6 * k + 6] = contact.directions
        row += len(contact.directions)
    return H


def grasped(kinds, seed):
    """Return arms and a body that move consistently with contacts of given kinds: robot, q, v, held, contacts, rng."""
    robot, rng = two_arms(legged.FixedBase()), np.random.default_rng(seed)
    q = rng.normal(size=robot.nq)
    places = legged.point_positions(robot, q, TIPS)
    omega, velocity = 2.0 * rng.normal(size=(2, 3))
    inertia = legged.box_inertia(MASS, (0.4, 0.3, 0.2), CENTER)
    held = soa.GraspedBody(inertia, places.mean(axis=0) + np.array([0.1, -0.2, 0.1]), omega, velocity)
    contacts = [soa.GraspContact(kind, rotation(rng.normal(size=3))) for kind in kinds]
    H = directions(contacts)
    J = np.concatenate([legged.point_jacobian(robot, q, *tip) for tip in TIPS])
    wanted = H @ np.concatenate([carried(held, place) for place in places])
    v = rng.normal(size=robot.nv)
    v = v + np.linalg.lstsq(H @ J, wanted - H @ J @ v, rcond=None)[0]
    return robot, q, v, held, contacts, rng


@pytest.mark.parametrize("kinds", [("rigid", "rigid"), *((kind, kind) for kind in LOOSE), ("rigid", "sliding")])
def test_tips_move_with_the_body_along_the_directions_of_their_contacts_alone(kinds):
    """Relative velocities along the directions, which turn with the body, stay zero: by central differences."""
    robot, q, v, held, contacts, rng = grasped(kinds, 3)
    tau = rng.normal(size=robot.nv)
    vdot, forces, alpha = soa.grasp(robot, q, v, tau, TIPS, held, contacts)

    def relative(h):
        there = legged.integrate(robot, q, h * v + h * h / 2 * vdot)
        place = held.position + h * held.velocity + h * h / 2 * alpha[3:]
        turn = rotation(h * held.omega + h * h / 2 * alpha[:3])
        body = soa.GraspedBody(held.inertia, place, held.omega + h * alpha[:3], held.velocity + h * alpha[3:])
        J = np.concatenate([legged.point_jacobian(robot, there, *tip) for tip in TIPS])
        own = np.concatenate([carried(body, p) for p in legged.point_positions(robot, there, TIPS)])
        H = directions([soa.GraspContact(c.kind, turn @ c.rotation) for c in contacts])
        return H @ (J @ (v + h * vdot) - own), J @ (v + h * vdot) - own

    assert np.abs(relative(0.0)[0]).max() < 1e-12
    size = max(np.abs(vdot).max(), np.abs(alpha).max())
    assert np.abs(relative(STEP)[0] - relative(-STEP)[0]).max() / (2 * STEP) < 1e-6 * size
    if kinds[0] != "rigid":
        assert np.abs(relative(0.0)[1]).max() > 0.1  # the tips do turn or slide on the body
    for contact, w in zip(contacts, forces, strict=True):  # nothing is transmitted along the free directions
        D = contact.directions
        assert w == pytest.approx(D.T @ (D @ w), abs=1e-12 * np.abs(forces).max())


@pytest.mark.parametrize("kind", LOOSE)
def test_arms_and_a_loosely_held_body_obey_newton_and_euler(kind):
    robot, q, v, held, contacts, rng = grasped((kind, "rigid"), 4)
    tau = rng.normal(size=robot.nv)
    vdot, forces, alpha = soa.grasp(robot, q, v, tau, TIPS, held, contacts)
    places = legged.point_positions(robot, q, TIPS)
    omega, close = held.omega, {"abs": 1e-9 * max(np.abs(vdot).max(), np.abs(forces).max())}
    center = alpha[3:] + np.cross(alpha[:3], CENTER) + np.cross(omega, np.cross(omega, CENTER))
    assert MASS * robot.gravity - forces[:, 3:].sum(axis=0) == pytest.approx(MASS * center, **close)
    moment = -forces[:, :3].sum(axis=0) - np.cross(places - held.position - CENTER, forces[:, 3:]).sum(axis=0)
    own = legged.box_inertia(MASS, (0.4, 0.3, 0.2)).about_origin
    assert moment == pytest.approx(own @ alpha[:3] + np.cross(omega, own @ omega), **close)
    J = np.concatenate([legged.point_jacobian(robot, q, *tip) for tip in TIPS])
    M, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v)
    assert M @ vdot + h - J.T @ forces.reshape(-1) == pytest.approx(tau, **close)


def test_internal_forces_have_no_resultant_and_the_motion_part_has_it_all():
    robot, q, _, held, contacts, rng = grasped(("soft finger", "point"), 5)
    places = legged.point_positions(robot, q, TIPS)
    H = directions(contacts)
    forces = (H.T @ rng.normal(size=len(H))).reshape(-1, 6)

    def resultant(f):
        return np.concatenate(
            [(f[:, :3] + np.cross(places - held.position, f[:, 3:])).sum(axis=0), f[:, 3:].sum(axis=0)]
        )

    motion, internal = soa.internal_forces(places, held, contacts, forces, length=0.1)
    assert motion + internal == pytest.approx(forces, abs=1e-12)
    assert resultant(internal) == pytest.approx(np.zeros(6), abs=1e-12)
    assert resultant(motion) == pytest.approx(resultant(forces), abs=1e-12)
    line = places[1] - places[0]  # two points can squeeze along the line between them only
    assert np.cross(internal[1, 3:], line) == pytest.approx(np.zeros(3), abs=1e-12)
    assert abs(internal[1, 3:] @ line) > 0.1


@pytest.mark.parametrize("length", [0.05, 1.0, 3.0])
def test_the_motion_part_has_least_norm_with_moments_divided_by_the_length(length):
    """It is orthogonal to all internal forces, so that none of them makes its norm smaller."""
    robot, q, _, held, contacts, rng = grasped(("rigid", "soft finger"), 5)
    places, H = legged.point_positions(robot, q, TIPS), directions(contacts)
    forces, others = (H.T @ rng.normal(size=(len(H), 2))).T.reshape(2, 2, 6)
    motion, _ = soa.internal_forces(places, held, contacts, forces, length=length)
    _, internal = soa.internal_forces(places, held, contacts, others, length=length)
    scale = np.array([1.0 / length] * 3 + [1.0] * 3)
    sizes = np.linalg.norm(scale * motion) * np.linalg.norm(scale * internal)
    assert abs(np.sum(scale * motion * scale * internal)) < 1e-12 * sizes


@pytest.mark.parametrize("kinds", [("rigid", "rigid"), ("soft finger", "soft finger"), ("line", "point")])
def test_the_control_of_a_grasp_gives_the_body_its_acceleration_and_internal_forces(kinds):
    robot, q, v, held, contacts, rng = grasped(kinds, 6)
    acceleration, posture = rng.normal(size=6), rng.normal(size=robot.nv)
    places = legged.point_positions(robot, q, TIPS)
    line = (places[1] - places[0]) / np.linalg.norm(places[1] - places[0])
    squeeze = np.zeros((2, 6))
    squeeze[0, 3:], squeeze[1, 3:] = 20.0 * line, -20.0 * line
    tau = soa.grasp_control(robot, q, v, TIPS, held, contacts, acceleration, squeeze, posture, length=0.1)
    vdot, forces, alpha = soa.grasp(robot, q, v, tau, TIPS, held, contacts)
    close = {"abs": 1e-9 * max(np.abs(tau).max(), np.abs(vdot).max())}
    assert alpha == pytest.approx(acceleration, **close)
    _, internal = soa.internal_forces(places, held, contacts, -forces, length=0.1)
    _, wanted = soa.internal_forces(places, held, contacts, squeeze, length=0.1)
    assert internal == pytest.approx(wanted, **close)
    assert wanted[0, 3:] @ line == pytest.approx(20.0, rel=1e-9)  # each of these contacts can squeeze
    J = np.concatenate([legged.point_jacobian(robot, q, *tip) for tip in TIPS])
    N = np.linalg.svd(directions(contacts) @ J)[2][len(directions(contacts)) :]  # free motions keep the posture's part
    M = legged.inertia_matrix(robot, q)
    assert N @ M @ (vdot - posture) == pytest.approx(np.zeros(len(N)), **close)


def test_wrong_contacts_are_refused():
    robot, q, v, held, contacts, _ = grasped(("point", "point"), 0)
    with pytest.raises(UnknownNameError, match="contact"):
        soa.GraspContact("glue")
    with pytest.raises(ShapeError, match="contacts must be one per tip, 2, got 1"):
        soa.grasp(robot, q, v, 0 * v, TIPS, held, contacts[:1])
    with pytest.raises(ArgumentError, match="length must be positive"):
        soa.internal_forces(np.zeros((2, 3)), held, contacts, np.zeros((2, 6)), length=0.0)


def test_steps_of_the_recursive_inverse_kinematics_have_damping_and_positions():
    robot = robots.spatial_quadruped()
    q = robot.neutral()
    assert not soa.damped_step(robot, q, [], 0.1).any()
    with pytest.raises(ArgumentError, match="damping must be positive"):
        soa.damped_step(robot, q, [soa.Target("leg1_foot", np.zeros(3))], 0.0)
    with pytest.raises(ShapeError, match="position of target 'leg1_foot'"):
        soa.inverse_kinematics(robot, q, [soa.Target("leg1_foot", np.zeros(2))])


@pytest.mark.parametrize("base", ["fixed", "planar", "floating", "euler"])
def test_a_step_of_the_recursive_inverse_kinematics_is_the_damped_least_squares_solution(base):
    kinds = ("revolute", "ball", "universal", "cylindrical")
    robot, rng = legged.random_tree(2, 10, joints=kinds, bases=(base,)), np.random.default_rng(1)
    q, damping = legged.random_configuration(robot, rng), 0.1
    J, e, targets = [], [], []
    for k, link in enumerate(robot.links[-2:]):
        frame = legged.Frame(link.name, (0.1, 0.2, 0.3))
        R, p = legged.frame_pose(robot, q, frame)
        turn, gap = 0.3 * rng.normal(size=(2, 3))
        targets.append(soa.Target(frame, p + gap, rotation(turn) @ R if k else None))
        J.append(legged.frame_jacobian(robot, q, frame)[0 if k else 3 :])
        e += [*(turn if k else ()), *gap]
    J = np.concatenate(J)
    expected = np.linalg.solve(damping**2 * np.eye(robot.nv) + J.T @ J, J.T @ e)
    assert soa.damped_step(robot, q, targets, damping) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_recursive_inverse_kinematics_reach_their_targets(seed):
    robot, rng = legged.random_tree(seed, 12, joints=("revolute", "ball"), branching=0.3), np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    there = legged.integrate(robot, q, 0.4 * rng.normal(size=robot.nv))
    names = [robot.links[-1].name, robot.links[6].name]
    targets = [soa.Target(name, p, R) for name in names for R, p in [legged.frame_pose(robot, there, name)]]
    solution = soa.inverse_kinematics(robot, q, targets)
    for target in targets:
        R, p = legged.frame_pose(robot, solution, target.frame)
        assert p == pytest.approx(target.position, abs=1e-9)
        assert pytest.approx(target.rotation, abs=1e-9) == R


@pytest.mark.parametrize("seed", range(3))
def test_the_last_steps_of_the_recursive_inverse_kinematics_converge_faster_than_linearly(seed):
    """The damping falls to a third in each step, and the share of the error that a step leaves with its square."""
    robot, rng = legged.random_tree(seed, 12, joints=("revolute", "ball"), branching=0.3), np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    there = legged.integrate(robot, q, 0.05 * rng.normal(size=robot.nv))
    R, p = legged.frame_pose(robot, there, robot.links[-1].name)
    target = soa.Target(robot.links[-1].name, p, R)

    def error(steps):
        solution = soa.inverse_kinematics(robot, q, [target], damping=1.0, tolerance=0.0, iterations=steps)
        R_found, p_found = legged.frame_pose(robot, solution, target.frame)
        return np.linalg.norm(np.concatenate([p_found - p, legged.rotations.rotation_error(R_found @ R.T)]))

    errors = [error(steps) for steps in (1, 2, 3, 4)]
    assert errors[2] > 1e-10  # far above rounding
    assert errors[3] / errors[2] < 0.1 * errors[1] / errors[0]  # 1 / 81, of a linear problem
