"""Closed loops subsystem by subsystem: the other methods, Pinocchio, closed forms, and growth of operations."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from loops.test_loops import A, B, C, D, four_bar_inertia_and_height, freudenstein
from oracles.looped import JOINTS, looped, parallelogram

import legged
import robots
from benchmarks.pages.parts import differences
from examples.studies.operations import closed_loops
from legged import loops
from legged.errors import LoopError, UnknownNameError
from legged.loops.dynamics import simulation_acceleration

OPTIONS = [{}, {"physics": True}, {"coupled": True}]
DRIVEN = closed_loops.CLOSED_ROBOTS


def ready_made(name, seed=0):
    """Return (closed robot, q, v, tau of its actuators)."""
    closed, rng = getattr(robots, name)(), np.random.default_rng(seed)
    start = {
        "four_bar": [1.0, -0.7, 1.5],
        "five_bar_leg": [0, 0, 0.5, 0.4, -0.9, -0.4, 0.9],
        "five_bar_quadruped": [1, 0, 0, 0, 0, 0, 0.5, *[0.4, -0.9, -0.4, 0.9] * 4],
        "delta": closed.robot.neutral(),
    }[name]
    q = legged.integrate(closed.robot, np.array(start, float), 0.2 * rng.normal(size=closed.robot.nv))
    q = loops.assemble(closed, q)
    v = loops.consistent_velocity(closed, q, rng.normal(size=closed.robot.nv))
    tau = np.zeros(closed.robot.nv)
    for joint in DRIVEN[name]:
        tau[closed.robot.joint(joint).v] = rng.normal()
    return closed, q, v, tau


def assert_same(closed, q, v, tau, wrenches=None, tolerance=1e-10, **options):
    """Compare acceleration, multipliers and rank with the direct solution; 1e-10: rounding times conditioning."""
    direct = loops.solve(closed, q, v, tau, wrenches, method="direct", **options)
    solution = loops.solve(closed, q, v, tau, wrenches, method="subsystems", **options)
    free = legged.forward_dynamics(closed.robot, q, v, tau, wrenches)  # a loop may leave no motion at all
    scale = max(np.abs(direct.vdot).max(), np.abs(free).max())
    assert np.abs(solution.vdot - direct.vdot).max() < tolerance * scale
    load = max(np.abs(direct.multipliers).max(), np.abs(legged.bias_forces(closed.robot, q, v)).max())
    assert (
        np.abs(solution.multipliers - direct.multipliers).max() < 100 * tolerance * load
    )  # divided by small mobilities
    assert solution.rank == direct.rank
    return solution


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "physics", "coupled"])
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 20))])
@pytest.mark.parametrize("name", JOINTS)
def test_subsystems_have_the_motion_and_multipliers_of_the_direct_solution(seed, name, options):
    closed, q, rng = looped(seed, JOINTS[name][0], **options)
    v, tau = rng.normal(size=(2, closed.robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    assert_same(closed, q, v, tau, {closed.robot.links[-1].name: rng.normal(size=6)})


def several_loops(seed, count=3):
    """Return (random tree with balls and rods between links, q, rng): loops that share joints, and nested ones."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, 16, branching=0.3)
    q = legged.random_configuration(robot, rng)
    closed = loops.ClosedRobot(robot, (), ())
    while len(closed.loops) < count:
        parent, child = rng.choice(len(robot.links), 2, replace=False)
        parent, child = robot.links[parent], robot.links[child]
        if parent.body == child.body:
            continue
        at = rng.normal(size=3) * 0.3
        (R, o), (R_child, o_child) = (legged.frame_pose(robot, q, link.name) for link in (parent, child))
        gap = rng.normal(size=3)
        rod = len(closed.loops) % 2
        name = f"loop{len(closed.loops)}"
        joint = loops.Rod(name, float(np.linalg.norm(gap))) if rod else legged.Spherical(name)
        where = R_child.T @ (o + R @ at + rod * gap - o_child)
        closed = closed.close(joint, parent=parent.name, child=child.name, at=at, child_at=where)
    return closed, q, rng


@pytest.mark.parametrize("seed", range(12))
def test_groups_of_several_random_loops(seed):
    closed, q, rng = several_loops(seed)
    v, tau = rng.normal(size=(2, closed.robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    assert_same(closed, q, v, tau)
    groups = loops.subsystems.loop_groups(closed)
    bodies = [k for group in groups for k in group.bodies]
    assert len(bodies) == len(set(bodies))
    assert sorted(k for group in groups for k in group.loops) == [0, 1, 2]
    for group in groups:
        for subsystem in group.subsystems:  # a branch has one root, on the head
            outside = [closed.robot.bodies[k].parent for k in subsystem.bodies]
            assert [parent for parent in outside if parent not in subsystem.bodies] == [group.head]


@pytest.mark.parametrize("name", DRIVEN)
def test_ready_made_robots_forward_inverse_and_traced(name):
    """Inverse dynamics returns the actuators' forces of forward dynamics, and its multipliers."""
    closed, q, v, tau = ready_made(name)
    wrenches = np.random.default_rng(1).normal(size=(len(closed.robot.links), 6))
    solution = assert_same(closed, q, v, tau, wrenches)
    load = np.abs(legged.bias_forces(closed.robot, q, v, wrenches)).max() + np.abs(solution.multipliers).max()
    inverse = loops.inverse_dynamics(closed, q, v, solution.vdot, wrenches, actuated=DRIVEN[name])
    assert inverse.tau == pytest.approx(tau, abs=1e-10 * load)
    assert inverse.multipliers == pytest.approx(solution.multipliers, abs=1e-8 * load)
    forward = legged.compile(partial(forward_by_subsystems, closed), q=q.size, v=v.size, tau=v.size)
    plain = loops.forward_dynamics(closed, q, v, tau, method="subsystems")
    assert np.abs(forward(q, v, tau) - plain).max() < 1e-9 * np.abs(plain).max()  # other combinations of the rows
    independent = loops.independent_only(closed, q)
    kernel = legged.compile(partial(inverse_by_subsystems, independent, DRIVEN[name]), q=q.size, v=v.size, vdot=v.size)
    expected = inverse_by_subsystems(independent, DRIVEN[name], q, v, plain)
    assert kernel(q, v, plain) == pytest.approx(expected, abs=1e-10 * np.abs(expected).max())


def forward_by_subsystems(closed, q, v, tau):
    return loops.forward_dynamics(closed, q, v, tau, method="subsystems")


def inverse_by_subsystems(closed, actuated, q, v, vdot):
    return loops.inverse_dynamics(closed, q, v, vdot, actuated=actuated).tau


@pytest.mark.parametrize("extra", [False, True])
def test_parallelogram_with_a_redundant_bar(extra):
    """Redundant constraints within a group; without a determinate subsystem all multipliers have the least norm."""
    closed, angle = parallelogram(extra), 1.1
    q = np.array([angle, -angle, *[angle] * (1 + extra)])
    v, tau = 2.0 * np.array([1, -1, *[1] * (1 + extra)]), np.array([4.0, *[0] * (2 + extra)])
    solution = assert_same(closed, q, v, tau)
    inverse = loops.inverse_dynamics(closed, q, v, solution.vdot, actuated=["a"])
    assert inverse.tau == pytest.approx(tau, abs=1e-10 * np.abs(solution.multipliers).max())
    assert inverse.multipliers == pytest.approx(solution.multipliers, abs=1e-10 * np.abs(solution.multipliers).max())


def test_redundant_rows_stay_inactive_slightly_off_the_constraints():
    """Off by 0.03 rad, the redundant row has a sine of 1e-5 to the others, more than a tolerance of 1e-7."""
    q, v, tau = np.array([1.1, -1.1, 1.1, 1.1]), 2.0 * np.array([1, -1, 1, 1]), np.array([4.0, 0, 0, 0])
    closed = loops.independent_first(parallelogram(True), q)
    off = q + 0.03 * np.array([0.3, -0.7, 1.0, -0.4])
    arguments = off, v, tau, np.zeros((len(closed.robot.links), 6)), loops.Stabilization(0.1)
    expected = simulation_acceleration(replace(closed, rows=closed.rows[:3], independent_count=3), *arguments)
    assert simulation_acceleration(closed, *arguments) == pytest.approx(expected, rel=1e-12)
    every = replace(closed, independent_count=None).with_rank_tolerance(1e-7)
    all_rows = simulation_acceleration(every, *arguments)
    assert np.abs(all_rows - expected).max() > np.abs(expected).max()


def test_stretched_crank_and_coupler_are_regular():
    """A dead center: one subsystem alone has no mobility along the stretched bars, the group has."""
    closed = robots.four_bar()
    q = loops.assemble(closed, [0.75, 0.0, 2.2], hold=["pin"])
    v = loops.consistent_velocity(closed, q, [1.0, 0.0, 0.0])
    assert_same(closed, q, v, np.array([0.3, 0.0, 0.0]))
    kernel = legged.compile(partial(forward_by_subsystems, closed), q=3, v=3, tau=3)
    expected = loops.forward_dynamics(closed, q, v, [0.3, 0.0, 0.0])
    assert kernel(q, v, [0.3, 0.0, 0.0]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("feet", [["FL"], ["FL", "RR"], ["FL", "FR", "RL", "RR"]])
def test_pinned_feet_of_robots_with_closed_legs(feet):
    """Loops through the world: the base belongs to the group, together with closed legs whose feet are held."""
    closed, q, v, tau = ready_made("five_bar_quadruped")
    for foot in feet:
        position = legged.frame_pose(closed.robot, q, f"{foot}_foot").position
        closed = closed.close(legged.Spherical(f"{foot} stands"), parent=None, child=f"{foot}_foot", at=position)
    v = loops.consistent_velocity(closed, q, v)
    solution = assert_same(closed, q, v, tau)
    inverse = loops.inverse_dynamics(closed, q, v, solution.vdot, actuated=DRIVEN["five_bar_quadruped"])
    load = np.abs(solution.multipliers).max()
    if len(feet) == 1:  # several feet can press against each other
        assert inverse.tau == pytest.approx(tau, abs=1e-9 * load)
    passive = np.ones(closed.robot.nv, bool)
    for joint in DRIVEN["five_bar_quadruped"]:
        passive[closed.robot.joint(joint).v] = False
    assert np.abs(inverse.tau[passive]).max() < 1e-9 * load
    again = loops.forward_dynamics(closed, q, v, inverse.tau, method="subsystems")
    assert again == pytest.approx(
        solution.vdot, abs=1e-8 * np.abs(solution.vdot).max()
    )  # loads of all legs over small masses


@pytest.mark.parametrize("kind", ["ball", "fixed"])
@pytest.mark.parametrize("seed", range(6))
def test_forward_dynamics_equal_those_of_pinocchio(seed, kind):
    pin = pytest.importorskip("pinocchio")
    from oracles.programs.pinocchio_model import pinocchio_twin

    closed, q, rng = looped(seed, JOINTS[kind][0])
    robot, (loop,) = closed.robot, closed.loops
    v, tau = rng.normal(size=(2, robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    twin = pinocchio_twin(robot)
    ends = []
    for name, pose in ((loop.parent, loop.frame), (loop.child, loop.child_frame)):
        joint, place = twin.where[name]
        ends += [joint, place * pin.SE3(pose.rotation, pose.position)]
    contact = pin.ContactType.CONTACT_3D if kind == "ball" else pin.ContactType.CONTACT_6D
    constraint = pin.RigidConstraintModel(contact, twin.model, *ends, pin.ReferenceFrame.LOCAL)
    constraints, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    constraints.append(constraint)
    data.append(constraint.createData())
    pin.initConstraintDynamics(twin.model, twin.data, constraints, data)
    args = twin.q(q), twin.v(v), twin.v(tau), constraints, data, pin.ProximalSettings(1e-14, 1e-14, 100)
    theirs = twin.ours(pin.constraintDynamics(twin.model, twin.data, *args))
    vdot = loops.forward_dynamics(closed, q, v, tau, method="subsystems")
    free = legged.forward_dynamics(robot, q, v, tau)
    assert np.abs(vdot - theirs).max() < 1e-9 * max(np.abs(vdot).max(), np.abs(free).max())


@pytest.mark.parametrize("crank", [0.3, 1.0, 2.5, -1.2, -2.8])
def test_inverse_dynamics_of_the_four_bar_in_closed_form(crank):
    """tau = m(a) a_dd + m'(a) a_d^2 / 2 + V'(a), with Freudenstein's equation."""
    closed, rate, acceleration, h = robots.four_bar(D, A, B, C), 3.0, -7.0, 1e-30
    coupler, rocker = freudenstein(crank)
    q = np.array([crank, coupler - crank, rocker])
    v = loops.consistent_velocity(closed, q, [rate, 0, 0], hold=["crank joint"])
    vdot = loops.consistent_acceleration(closed, q, v, [acceleration, 0, 0], hold=["crank joint"])
    m, _ = four_bar_inertia_and_height(crank)
    slope, pull = (part.imag / h for part in four_bar_inertia_and_height(crank + 1j * h))
    expected = m * acceleration + 0.5 * slope * rate**2 + pull
    tau = loops.inverse_dynamics(closed, q, v, vdot, actuated=["crank joint"]).tau
    assert tau == pytest.approx([expected, 0, 0], abs=1e-10 * abs(expected) + 1e-9)


def linkage(cut):
    """Return the four-bar linkage with one of its joints cut, at a configuration with closed loops."""
    bar = {
        name: legged.rod_inertia(2.0 * length, (0, 0, 0), (length, 0, 0))
        for name, length in zip("abc", (A, B, C), strict=True)
    }
    builder = loops.LoopBuilder("linkage", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    builder.add(legged.Revolute("crank joint", "-y"), legged.Link("crank", bar["a"]), to="ground")
    builder.add(legged.Revolute("rocker joint", "-y"), legged.Link("rocker", bar["c"]), to="ground", at=(D, 0, 0))
    pin, top = (legged.Revolute(name, "-y") for name in ("pin", "top"))
    coupler = legged.Link("coupler", bar["b"])
    if cut == "pin":
        builder.add(top, coupler, to="rocker", at=(C, 0, 0))
        builder.close(pin, parent="crank", child="coupler", at=(A, 0, 0), child_at=(B, 0, 0))
    else:
        builder.add(pin, coupler, to="crank", at=(A, 0, 0))
        builder.close(top, parent="rocker", child="coupler", at=(C, 0, 0), child_at=(B, 0, 0))
    closed = builder.build()
    return closed, loops.assemble(closed, [1.0, 1.6, 1.9 if cut == "pin" else -0.5])


def test_determinate_subsystems_come_first():
    """Cut at the driven link, the other subsystem has two equations for two multipliers; cut elsewhere none has."""
    closed, q = linkage("pin")
    (step,) = loops.determinacy(closed, q, ["crank joint"])
    assert (step.links, step.joints, step.equations, step.multipliers) == (("rocker",), ("pin",), 2, 2)
    assert step.determinate
    closed, q = linkage("top")
    (step,) = loops.determinacy(closed, q, ["crank joint"])
    assert (set(step.links), step.equations, step.multipliers) == ({"crank", "rocker"}, 2, 2)
    (step,) = loops.determinacy(closed, q, ["crank joint", "rocker joint"])
    assert not step.determinate
    assert "1 equations, 2 multipliers of top (indeterminate)" in str(step)


def test_known_multipliers_make_the_next_subsystem_determinate():
    """A chain of sliders: the force of the last contact follows from the last body, and is known in the one before."""
    builder = legged.RobotBuilder("sliders", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    for k in range(4):
        slider = legged.Link(f"body{k}", legged.point_mass(1.0 + k))
        builder.add(legged.Prismatic(f"slide{k}", "x"), slider, to="ground", at=(0, k, 0))
    closed = loops.ClosedRobot(builder.build(), (), ())
    for k in (1, 0, 2):
        closed = closed.close(loops.Sliding(f"contact{k}", "x"), parent=f"body{k}", child=f"body{k + 1}")
    steps = loops.determinacy(closed, np.zeros(4), ["slide0"])
    assert [step.joints for step in steps] == [("contact2",), ("contact1",), ("contact0",)]
    assert [step.links for step in steps] == [("body3",), ("body2",), ("body1",)]
    vdot = np.full(4, 2.0)
    forces = loops.inverse_dynamics(closed, np.zeros(4), np.zeros(4), vdot, actuated=["slide0"])
    assert forces.tau == pytest.approx([2.0 * (1 + 2 + 3 + 4), 0, 0, 0], abs=1e-12)
    assert forces.multipliers == pytest.approx([2.0 * (3 + 4), 2.0 * (2 + 3 + 4), 2.0 * 4])  # of contacts 1, 0, 2


def test_motions_that_actuators_cannot_produce_leave_forces_at_other_joints():
    closed, q = linkage("pin")
    v = np.zeros(3)
    vdot = loops.consistent_acceleration(closed, q, v, [1.0, 0.0, 0.0])
    missing = loops.inverse_dynamics(closed, q, v, vdot, actuated=[])
    assert np.abs(missing.tau).max() > 1e-3
    motion = loops.solve(closed, q, v, missing.tau, method="subsystems")
    assert motion.vdot == pytest.approx(vdot, abs=1e-10 * np.abs(vdot).max())


def test_loop_forces_of_motors_in_closing_joints():
    closed, q = linkage("top")
    forces, v = {"top": 1.3}, np.zeros(3)
    solution = assert_same(closed, q, v, np.zeros(3), loop_forces=forces)
    inverse = loops.inverse_dynamics(closed, q, v, solution.vdot, actuated=["crank joint"], loop_forces=forces)
    assert inverse.tau == pytest.approx(np.zeros(3), abs=1e-12)


def test_a_tree_without_loops_has_its_forward_and_inverse_dynamics():
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(0)
    closed, q = loops.ClosedRobot(robot, (), ()), legged.random_configuration(robot, rng)
    v, tau = rng.normal(size=(2, robot.nv))
    solution = loops.solve(closed, q, v, tau, method="subsystems")
    assert solution.vdot == pytest.approx(legged.forward_dynamics(robot, q, v, tau), rel=1e-9)
    assert solution.multipliers.shape == (0,)
    forces = loops.inverse_dynamics(closed, q, v, solution.vdot, actuated=[])
    assert forces.tau == pytest.approx(tau, abs=1e-10 * np.abs(legged.bias_forces(robot, q, v)).max())


def closed_legs(count):
    """Return a trunk on several five-bar legs."""
    builder = loops.LoopBuilder("legs", legged.Link("trunk", legged.box_inertia(9.0, (1, 1, 1))))
    for k in range(count):
        for side, x in (("front", 0.05), ("rear", -0.05)):
            rod = legged.rod_inertia(0.2, (0, 0, 0), (0, 0, -0.2))
            thigh, shank = (legged.Link(f"{side}_{part}{k}", rod) for part in ("thigh", "shank"))
            builder.add(legged.Revolute(f"{side}_hip{k}", "-y"), thigh, to="trunk", at=(k + x, k, 0))
            builder.add(legged.Revolute(f"{side}_knee{k}", "-y"), shank, to=thigh.name, at=(0, 0, -0.2))
        ends = {"at": (0, 0, -0.2), "child_at": (0, 0, -0.2)}
        builder.close(legged.Revolute(f"ankle{k}", "-y"), parent=f"rear_shank{k}", child=f"front_shank{k}", **ends)
    return builder.build()


def operations(closed, method):
    function = partial(loops.forward_dynamics, closed, method=method)
    counts = legged.count(function, None, q=closed.robot.nq, v=closed.robot.nv, tau=closed.robot.nv)
    return counts.M + counts.A


def test_operations_grow_linearly_with_the_number_of_closed_legs():
    """Multipliers of a leg are eliminated at the leg; solved all together they cost more per leg, the more legs."""
    two, four, six = (operations(closed_legs(n), "subsystems") for n in (2, 4, 6))
    assert six - four == pytest.approx(four - two, rel=0.02)  # sums at the trunk differ by constants
    together = [operations(closed_legs(n), "elimination") for n in (2, 4, 6)]
    assert together[2] - together[1] > 1.3 * (together[1] - together[0])
    assert six < 0.5 * together[2]


def test_the_page_has_the_operations_of_today():
    """Terms are merged where constants are equal, which depends on the rounding of sums on a machine: up to 1 %."""
    page = (Path(__file__).parents[2] / "docs/explanation/loops.md").read_text(encoding="utf-8")
    table = closed_loops.closed_count_table({name: getattr(robots, name)() for name in DRIVEN}, DRIVEN)
    stated = {line.split("|")[1]: line for line in page.splitlines() if line.count("|") > 4}
    rows = [line for line in table.markdown().splitlines() if line.startswith("|") and "---" not in line]
    assert rows
    for line in rows:
        assert differences(stated[line.split("|")[1]], line, relative=0.01) == []


def test_refused_arguments_are_named():
    closed, q = linkage("pin")
    with pytest.raises(UnknownNameError, match="subsystem"):
        loops.solve(closed, q, np.zeros(3), np.zeros(3), method="subsystem")
    with pytest.raises(UnknownNameError, match="joint named 'crank'"):
        loops.inverse_dynamics(closed, q, np.zeros(3), np.zeros(3), actuated=["crank"])
    with pytest.raises(LoopError, match="no acceleration keeps the loops of 'linkage' closed with crank joint, rocker"):
        hold = ["crank joint", "rocker joint"]
        loops.consistent_acceleration(closed, q, np.zeros(3), [1.0, 5.0, 0.0], hold=hold)
