"""Closed loops: constraints, their rank, the three ways to solve, and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.looped import JOINTS, looped, parallelogram

import legged
import robots
from legged import loops
from legged.algorithms import operators
from legged.errors import ArgumentError
from legged.rotations import axis_matrix, quaternion_log, quaternion_of

METHODS = ("direct", "elimination", "projection")


@pytest.mark.parametrize("name", JOINTS)
def test_a_closing_joint_has_six_constraints_less_its_degrees_of_freedom(name):
    joint, rows = JOINTS[name]
    closed, q, _ = looped(3, joint)
    assert np.abs(loops.residual(closed, q)).max() < 1e-12
    assert loops.residual(closed, q).shape == (rows,)
    assert loops.mobility(closed, q).rank == rows


@pytest.mark.parametrize("name", JOINTS)
def test_rows_differentiate_to_their_jacobian_and_bias(name):
    """Equations (16), (17), away from where the loop is closed: central differences along the motion."""
    closed, q, rng = looped(5, JOINTS[name][0], bases=("floating",))  # both frames turn
    q = legged.integrate(closed.robot, q, 0.3 * rng.normal(size=closed.robot.nv))
    v, h = rng.normal(size=closed.robot.nv), 1e-5
    ahead, behind = (legged.integrate(closed.robot, q, step * v) for step in (h, -h))
    J = loops.jacobian(closed, q)
    slope = (loops.residual(closed, ahead) - loops.residual(closed, behind)) / (2 * h)
    bound = list(closed.holonomic)
    assert (J @ v)[bound] == pytest.approx(slope[bound], abs=1e-7 * (1 + np.abs(slope).max()))  # h^2 and rounding / h
    change = (loops.jacobian(closed, ahead) @ v - loops.jacobian(closed, behind) @ v) / (2 * h)
    assert loops.bias(closed, q, v) == pytest.approx(change, abs=1e-7 * (1 + np.abs(change).max()))


@pytest.mark.parametrize("method", METHODS)
def test_a_tree_without_loops_has_its_forward_dynamics_and_no_multipliers(method):
    robot, rng = robots.planar_biped(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, robot.nv))
    solution = loops.solve(loops.ClosedRobot(robot, (), ()), q, v, tau, method=method)
    assert solution.vdot == pytest.approx(legged.forward_dynamics(robot, q, v, tau), rel=1e-9)
    assert solution.multipliers.shape == (0,)


@pytest.mark.parametrize("options", [{}, {"physics": True}, {"coupled": True}], ids=["plain", "physics", "coupled"])
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 20))])
@pytest.mark.parametrize("name", JOINTS)
def test_three_methods_agree_and_obey_the_equations(seed, name, options):
    """Equations (15), (17) to (22); joints with springs, friction, rotors, and some that follow others."""
    closed, q, rng = looped(seed, JOINTS[name][0], **options)
    robot = closed.robot
    v, tau = rng.normal(size=(2, robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    wrenches = {robot.links[-1].name: rng.normal(size=6)}
    solutions = [loops.solve(closed, q, v, tau, wrenches, method=method) for method in METHODS]
    M, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v, wrenches)
    L = loops.jacobian(closed, q)
    free = legged.forward_dynamics(robot, q, v, tau, wrenches)  # a loop may leave no motion at all
    scale = max(np.abs(solutions[0].vdot).max(), np.abs(free).max())
    for solution in solutions:
        assert np.abs(solution.vdot - solutions[0].vdot).max() < 1e-9 * scale
        left = M @ solution.vdot + h - tau - L.T @ solution.multipliers
        assert np.abs(left).max() < 1e-9 * (np.abs(M).max() * scale + np.abs(h).max())
        assert np.abs(loops.acceleration(closed, q, v, solution.vdot)).max() < 1e-9 * (scale + v @ v)


@pytest.mark.parametrize("name", JOINTS)
def test_loop_wrenches_act_on_both_links_in_opposite_directions(name):
    """The cut tree bears the wrench on the child and its reaction on the parent, moments included."""
    closed, q, rng = looped(4, JOINTS[name][0], bases=("floating",))
    robot, (loop,) = closed.robot, closed.loops
    v, tau = rng.normal(size=(2, robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    solution = loops.solve(closed, q, v, tau)
    n, f = np.split(loops.loop_wrenches(closed, q, solution.multipliers)[0], 2)
    _, place = legged.frame_pose(robot, q, loop.frames[1])
    wrenches = {}
    for link, sign in ((loop.parent, -1.0), (loop.child, 1.0)):
        R, o = legged.frame_pose(robot, q, link)
        wrenches[link] = sign * np.concatenate([R.T @ (n + np.cross(place - o, f)), R.T @ f])
    needed = legged.inverse_dynamics(robot, q, v, solution.vdot, wrenches)
    load = np.abs(legged.bias_forces(robot, q, v)).max() + np.abs(solution.multipliers).max()
    assert needed == pytest.approx(tau, abs=1e-9 * load)


@pytest.mark.parametrize("seed", range(3))
def test_a_weld_is_the_operators_closed_chain(seed):
    closed, q, rng = looped(seed + 10, legged.Fixed("weld"))
    robot, loop = closed.robot, closed.loops[0]
    v, tau = rng.normal(size=(2, robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    tips = [(loop.parent, loop.frame.position), (loop.child, loop.child_frame.position)]
    other, _ = operators.closed_chain(robot, q, v, tau, *tips)
    vdot = loops.forward_dynamics(closed, q, v, tau)
    assert np.abs(vdot - other).max() < 1e-8 * np.abs(vdot).max()


def test_traced_dynamics_equal_plain_ones():
    closed, q, rng = looped(1, legged.Revolute("pin", "z"))
    n = closed.robot.nv
    v, tau = rng.normal(size=(2, n))
    kernel = legged.compile(loops.forward_dynamics, closed)
    vdot = loops.forward_dynamics(closed, q, v, tau)
    assert np.abs(kernel(q, v, tau) - vdot).max() < 1e-9 * np.abs(vdot).max()


def test_kernels_take_numbers_of_the_tree_of_a_closed_robot():
    closed, q, rng = looped(1, legged.Revolute("pin", "z"))
    v, tau = rng.normal(size=(2, closed.robot.nv))
    name = f"{closed.robot.links[-1].name}.mass"
    kernel = legged.compile(loops.forward_dynamics, closed, parameters=[name, "gravity"])
    values = {name: 5.0, "gravity": [0.0, 1.0, -2.0]}
    assert closed.with_parameters(values).parameters()[name] == 5.0
    assert closed.with_parameters(values).loops == closed.loops
    expected = loops.forward_dynamics(closed.with_parameters(values), q, v, tau)
    plain = loops.forward_dynamics(closed, q, v, tau)
    actual = kernel(q, v, tau, [5.0, 0.0, 1.0, -2.0])
    assert np.abs(actual - expected).max() < 1e-9 * np.abs(expected).max()
    assert np.abs(plain - expected).max() > 1e-2 * np.abs(expected).max()
    tree = closed.robot.edit().change_link(closed.robot.links[-1].name, mass=5.0)
    edited = replace(closed, robot=tree.change_robot(gravity=values["gravity"]).build())
    assert np.abs(loops.forward_dynamics(edited, q, v, tau) - expected).max() < 1e-9 * np.abs(expected).max()


# The four-bar linkage in closed form.

A, B, C, D = 0.2, 0.45, 0.4, 0.5  # crank, coupler, rocker, ground, [m]
G = 9.81


def freudenstein(crank):
    """Return the directions of coupler and rocker, [rad], of the open assembly: Freudenstein's equation."""
    k1, k2, k3 = D / A, D / C, (A**2 - B**2 + C**2 + D**2) / (2 * A * C)
    a = np.cos(crank) - k1 - k2 * np.cos(crank) + k3
    b, c = -2 * np.sin(crank), k1 - (k2 + 1) * np.cos(crank) + k3
    rocker = 2 * np.arctan((-b - np.sqrt(b * b - 4 * a * c)) / (2 * a))
    sine, cosine = C * np.sin(rocker) - A * np.sin(crank), D + C * np.cos(rocker) - A * np.cos(crank)
    return 2 * np.arctan(sine / (np.sqrt(sine**2 + cosine**2) + cosine)), rocker


def four_bar_inertia_and_height(crank):
    """Return (reduced inertia, potential energy) over the crank's angle; rods of 2 kg/m."""
    coupler, rocker = freudenstein(crank)
    w3 = A / B * np.sin(rocker - crank) / np.sin(coupler - rocker)
    w4 = A / C * np.sin(crank - coupler) / np.sin(rocker - coupler)
    x, z = -A * np.sin(crank) - B / 2 * np.sin(coupler) * w3, A * np.cos(crank) + B / 2 * np.cos(coupler) * w3
    a, b, c = 2 * A, 2 * B, 2 * C  # masses
    inertia = a * A**2 / 3 + b * (x * x + z * z + B**2 / 12 * w3**2) + c * C**2 / 3 * w4**2
    height = a * A / 2 * np.sin(crank) + b * (A * np.sin(crank) + B / 2 * np.sin(coupler)) + c * C / 2 * np.sin(rocker)
    return inertia, G * height


@pytest.mark.parametrize("crank", [0.3, 1.0, 2.5, -1.2, -2.8])
def test_four_bar_obeys_freudensteins_equation(crank):
    """Positions, and the acceleration m(a) a_dd + m'(a) a_d^2 / 2 + V'(a) = tau by complex steps."""
    closed = robots.four_bar(D, A, B, C)
    q = loops.assemble(closed, [crank, 0.8 - crank, 1.6], hold=["crank joint"])
    coupler, rocker = freudenstein(crank)
    assert q == pytest.approx([crank, coupler - crank, rocker], abs=1e-11)
    rate, tau, h = 3.0, 0.7, 1e-30
    v = loops.consistent_velocity(closed, q, [rate, 0, 0], hold=["crank joint"])
    m, _ = four_bar_inertia_and_height(crank)
    slope, pull = (part.imag / h for part in four_bar_inertia_and_height(crank + 1j * h))
    expected = (tau - 0.5 * slope * rate**2 - pull) / m
    for method in METHODS:
        assert loops.forward_dynamics(closed, q, v, [tau, 0, 0], method=method)[0] == pytest.approx(expected, rel=1e-10)
    kinetic = legged.kinetic_energy(closed.robot, q, v)
    assert kinetic == pytest.approx(0.5 * m * rate**2, rel=1e-11)


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_parallelogram_with_a_redundant_bar_moves_as_a_pendulum(extra, method):
    """Redundant constraints: the acceleration in closed form, multipliers of least norm, and the rank."""
    closed, angle, rate, tau = parallelogram(extra), 1.1, 2.0, 4.0
    cranks = 2 + extra
    q = np.array([angle, -angle, *[angle] * (1 + extra)])
    assert np.abs(loops.residual(closed, q)).max() < 1e-12
    v = rate * np.array([1, -1, *[1] * (1 + extra)])
    solution = loops.solve(closed, q, v, [tau, *[0] * (2 + extra)], method=method)
    expected = (tau - G * 0.5 * np.cos(angle) * (cranks / 2 + 3)) / (0.25 * (cranks / 3 + 3))
    assert solution.vdot == pytest.approx(expected * v / rate, rel=1e-10)
    told = loops.mobility(closed, q)
    assert (solution.rank, told.rank, told.freedoms) == (2 + extra, 2 + extra, 1)
    assert len(told.dependent) == told.rows - told.rank
    assert solution.inconsistency < 1e-12 * rate**2
    forces = np.linalg.pinv(loops.jacobian(closed, q).T) @ loops.jacobian(closed, q).T @ solution.multipliers
    assert solution.multipliers == pytest.approx(forces, abs=1e-9 * np.abs(forces).max())


def test_flat_parallelogram_gains_a_degree_of_freedom():
    """Rank changes with the configuration: flat, the coupler may follow either branch."""
    closed = parallelogram(False)
    flat = np.zeros(3)
    assert loops.mobility(closed, flat).freedoms == 2
    assert loops.mobility(closed, np.array([0.5, -0.5, 0.5])).freedoms == 1
    vdot = [loops.forward_dynamics(closed, flat, np.zeros(3), np.zeros(3), method=method) for method in METHODS]
    assert vdot[1] == pytest.approx(vdot[0], rel=1e-9)
    assert vdot[2] == pytest.approx(vdot[0], rel=1e-9)


def misaligned_four_bar(angle, weld=False):
    """A four-bar in MJCF's way, whose coupler hangs in a frame turned by an angle about x instead of pi/2."""
    turn, back = axis_matrix("x", angle), axis_matrix("x", -np.pi / 2)
    crank, coupler, rocker = (
        legged.Link(name, legged.rod_inertia(2.0 * x, (0, 0, 0), (x, 0, 0)))
        for name, x in (("crank", A), ("coupler", B), ("rocker", C))
    )
    builder = legged.RobotBuilder("four-bar", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    builder.add(legged.Revolute("crank joint", "-y"), crank, to="ground")
    builder.add(legged.Revolute("pin", "z"), coupler, to="crank", at=(A, 0, 0), rotation=turn)
    builder.add(legged.Revolute("rocker joint", "-y"), rocker, to="ground", at=(D, 0, 0))
    joint = legged.Spherical("closing pin") if not weld else legged.Revolute("closing pin", "y")
    ends = {"at": (B, 0, 0), "child_at": (C, 0, 0), "rotation": back if weld else None}
    return loops.close(builder.build(), joint, parent="coupler", child="rocker", **ends)


@pytest.mark.parametrize("weld", [False, True], ids=["ball", "hinge"])
@pytest.mark.parametrize("angle", [np.pi / 2, np.pi / 2 + 1e-8, 1.570796, 1.5708, 1.571, 1.57])
def test_rounded_angles_do_not_lock_a_linkage(angle, weld):
    """Mobility 1 and the acceleration in closed form, to the square of the rounding, by every method and compiled."""
    closed, crank, rate, tau, h = misaligned_four_bar(angle, weld), 1.0, 3.0, 0.7, 1e-30
    q = loops.assemble(closed, [crank, -0.2, 1.6], hold=["crank joint"])
    v = loops.consistent_velocity(closed, q, [rate, 0, 0], hold=["crank joint"])
    m, _ = four_bar_inertia_and_height(crank)
    slope, pull = (part.imag / h for part in four_bar_inertia_and_height(crank + 1j * h))
    expected = (tau - 0.5 * slope * rate**2 - pull) / m
    kernel = legged.compile(loops.forward_dynamics, closed)
    methods = (*METHODS, "subsystems")
    accelerations = [loops.forward_dynamics(closed, q, v, [tau, 0, 0], method=method) for method in methods]
    accelerations += [
        kernel(q, v, [tau, 0.0, 0.0]),
        loops.divide_and_conquer.forward_dynamics(closed, q, v, [tau, 0, 0]),
    ]
    first = loops.independent_first(closed, q)
    accelerations += [loops.forward_dynamics(first, q, v, [tau, 0, 0])]
    error = abs(angle - np.pi / 2)
    for vdot in accelerations:
        assert vdot[0] == pytest.approx(expected, rel=1e-9 + 100 * error**2)
        assert vdot == pytest.approx(accelerations[0], rel=1e-9)
    told = loops.mobility(closed, q)
    assert (told.freedoms, told.rank) == (1, 2)
    assert told.gap > 50
    assert bool(told.uncertain) == (error > 1e-9) or weld
    run = legged.simulate(closed, until=0.05, q=q, v=v)
    assert run.q[-1][0] > crank + 0.1
    locked = closed.with_rank_tolerance(1e-7) if error > 1e-5 else closed
    assert loops.mobility(locked, q).freedoms == (0 if error > 1e-5 else 1)


def test_a_linkage_near_a_singular_posture_keeps_its_constraints():
    """2e-3 rad from flat, where the margin of a constraint is 2e-3, a parallelogram has one degree of freedom."""
    closed = parallelogram(False)
    for angle in (2e-3, 1e-2):
        told = loops.mobility(closed, np.array([angle, -angle, angle]))
        assert told.freedoms == 1
        assert "nearly redundant" in str(told)
    with pytest.raises(ArgumentError, match=r"rank_tolerance must be at most 0\.1"):
        closed.with_rank_tolerance(0.5)


def test_the_gap_is_that_between_the_nearest_rows_of_both_kinds():
    """Margins 1e-5 and 1e-9 are redundant, 0.5 and 0.02 independent: 0.02 / 1e-5."""
    names, tolerances = ("a", "b", "c", "d"), np.full(4, 1e-4)
    told = loops.Mobility(4, 2, 1, np.ones(3), ("b", "d"), names, np.array([0.5, 1e-5, 0.02, 1e-9]), tolerances)
    assert told.gap == pytest.approx(2e3)
    assert replace(told, margins=np.array([0.5, 1.0, 0.02, 0.3])).gap == np.inf


def test_a_ball_rolls_down_a_slope_at_five_sevenths():
    slope, radius = 0.4, 0.3
    ball = legged.RobotBuilder("ball", legged.Link("ball", legged.sphere_inertia(2.0, radius))).build()
    tilt = legged.rpy(0.0, slope, 0.0)
    closed = loops.close(ball, loops.Rolling("contact", radius), parent=None, child="ball", rotation=tilt)
    q, v = ball.neutral(), np.zeros(6)
    q[4:7] = tilt @ (0, 0, radius)
    solution = loops.solve(closed, q, v, np.zeros(6))
    down = tilt @ (1, 0, 0)
    acceleration = 5 / 7 * G * np.sin(slope)
    assert solution.vdot[3:] == pytest.approx(acceleration * down, abs=1e-12 * G)
    normal = loops.loop_wrenches(closed, q, solution.multipliers)[0, 3:] @ (tilt @ (0, 0, 1))
    assert normal == pytest.approx(2.0 * G * np.cos(slope))


def test_motors_in_a_closing_joint_act_as_in_the_tree():
    """tau_a of equation (19): the linkage cut at the rocker's joint instead, whose motor closes the loop."""
    tau, bars = 1.3, {}
    for name, end in (("crank", A), ("coupler", B), ("rocker", -C)):
        bars[name] = legged.Link(name, legged.rod_inertia(2.0 * abs(end), (0, 0, 0), (end, 0, 0)))
    ground = legged.Link("ground", legged.point_mass(1.0))
    builder = loops.LoopBuilder("linkage", ground, base=legged.FixedBase())
    builder.add(legged.Revolute("crank joint", "-y"), bars["crank"], to="ground")
    builder.add(legged.Revolute("pin", "-y"), bars["coupler"], to="crank", at=(A, 0, 0))
    builder.add(legged.Revolute("top", "-y"), bars["rocker"], to="coupler", at=(B, 0, 0))
    ends = {"at": (D, 0, 0), "child_at": (-C, 0, 0)}
    other = builder.close(legged.Revolute("foot", "-y"), parent="ground", child="rocker", **ends).build()
    q = loops.assemble(other, [1.0, -0.5, 1.1], hold=["crank joint"])
    solution = loops.solve(other, q, np.zeros(3), np.zeros(3), loop_forces={"foot": tau})
    closed = robots.four_bar(D, A, B, C)
    q = loops.assemble(closed, [1.0, -0.5, 1.6], hold=["crank joint"])
    expected = loops.forward_dynamics(closed, q, np.zeros(3), [0, 0, tau])
    assert solution.vdot[:2] == pytest.approx(expected[:2], rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [legged.Revolute, legged.Prismatic])
def test_a_motor_in_a_closing_joint_does_the_work_of_its_rate(kind, seed):
    """tau_a . v = force times the rate of the joint's angle or travel, by central differences."""
    axis, force, h = np.array([0.0, 0.6, 0.8]), 1.7, 1e-5
    closed, q, rng = looped(seed, kind("motor", axis), bases=("floating",))
    robot, (parent, child) = closed.robot, closed.loops[0].frames
    v = loops.consistent_velocity(closed, q, rng.normal(size=robot.nv))

    def coordinate(q):
        R, place = legged.frame_pose(robot, q, child, relative_to=parent)
        turn = quaternion_log(quaternion_of(R))
        return axis @ (turn if kind is legged.Revolute else place)

    ahead, behind = (coordinate(legged.integrate(robot, q, step * v)) for step in (h, -h))
    tau = loops.active_forces(closed, q, {"motor": force})
    assert tau @ v == pytest.approx(force * (ahead - behind) / (2 * h), rel=1e-7, abs=1e-8)  # h^2, and rounding / h


def test_baumgarte_terms_are_a_critically_damped_spring():
    closed, q, rng = looped(2, legged.Spherical("ball"))
    robot, T = closed.robot, 0.1
    q = legged.integrate(robot, q, 1e-2 * rng.normal(size=robot.nv))
    v, tau = rng.normal(size=(2, robot.nv))
    vdot = loops.forward_dynamics(closed, q, v, tau, stabilization=loops.Stabilization(T))
    wanted = -2 / T * (loops.jacobian(closed, q) @ v) - loops.residual(closed, q) / T**2
    assert loops.acceleration(closed, q, v, vdot) == pytest.approx(wanted, abs=1e-9 * np.abs(vdot).max())
