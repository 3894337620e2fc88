"""Closed loops: found from cycles, closed by Newton iteration, rejected with a reason."""

import numpy as np
import pytest
from oracles.looped import looped

import legged
import robots
from legged import loops
from legged.errors import ArgumentError, DefinitionError, LeggedError, LoopError, UnknownNameError


def test_cycles_are_found_and_cut():
    """The joint with friction stays in the tree, the ball with three freedoms closes the loop."""
    friction = legged.JointPhysics(damping=0.1)
    bar = {name: legged.Link(name, legged.box_inertia(1.0, (1, 0.1, 0.2), (0.5, 0, 0))) for name in "abc"}
    builder = loops.LoopBuilder("triangle", legged.Link("base", legged.box_inertia(1, (1, 1, 1))))
    builder.add(legged.Revolute("one", "y"), bar["a"], to="base")
    builder.add(legged.Revolute("two", "y"), bar["b"], to="base").link(bar["c"])
    builder.joint(legged.Spherical("three"), parent="a", child="c", at=(1, 0, 0))
    builder.joint(legged.Revolute("four", "y", physics=friction), parent="b", child="c", at=(1, 0, 0))
    closed = builder.build()
    assert [loop.name for loop in closed.loops] == ["three"]
    assert closed.cycle("three") == ("a", "base", "b", "c")
    assert np.abs(loops.residual(closed, closed.robot.neutral())).max() == 0.0
    with pytest.raises(DefinitionError, match="'four' closes a loop and has springs, friction"):
        builder.build(cut=["four"])
    with pytest.raises(UnknownNameError, match="joint named 'five'"):
        builder.build(cut=["five"])
    with pytest.raises(DefinitionError, match="reverse a joint"):
        builder.link(legged.Link("loose")).build()


def test_inconsistent_states_raise_errors():
    closed = robots.four_bar(0.5, 0.2, 0.1, 0.1)  # the bars do not reach
    with pytest.raises(LoopError, match="closes the loops of 'four-bar linkage'") as told:
        loops.assemble(closed, [3.0, -2.0, 2.0])
    assert told.value.residual > 0.05
    closed = robots.four_bar()
    q = loops.assemble(closed, [1.0, -0.5, 1.6])
    with pytest.raises(ArgumentError, match="iterations must be at least 0"):
        loops.assemble(closed, q, iterations=-1)
    with pytest.raises(ArgumentError, match="tolerance must be at least 0"):
        loops.consistent_velocity(closed, q, np.zeros(3), tolerance=-1.0)
    with pytest.raises(ArgumentError, match="force of joint 'closing pin' must be a number"):
        loops.active_forces(closed, q, {"closing pin": [1.0, 2.0]})
    with pytest.raises(LoopError, match="hold fewer joints") as told:
        loops.consistent_velocity(closed, q, [1.0, 0, 0], hold=["crank joint", "pin"])
    assert told.value.residual > 0.01
    with pytest.raises(LoopError, match=r"call `consistent_velocity\(closed, q, v\)`"):
        legged.simulate(closed, until=0.1, q=q, v=[1.0, 0, 0])
    with pytest.raises(LoopError, match=r"call `assemble\(closed, q\)`"):
        legged.simulate(closed, until=0.1, q=q + 0.1)


def test_invalid_closing_joints_are_refused():
    robot = robots.planar_biped()
    with pytest.raises(DefinitionError, match="of kind free cannot close a loop"):
        loops.close(robot, legged.Free("free"), parent="trunk", child="a_foot")
    with pytest.raises(DefinitionError, match="needs a name"):
        loops.close(robot, loops.Rod("", 1.0), parent="trunk", child="a_foot")
    with pytest.raises(DefinitionError, match="which are one body"):
        loops.close(robot, legged.Spherical("ball"), parent="a_heel", child="a_toe")
    with pytest.raises(UnknownNameError, match="'a_foot'"):
        loops.close(robot, legged.Spherical("ball"), parent="trunk", child="a_fot")
    with pytest.raises(DefinitionError, match="two joints are named 'a_hip'"):
        loops.close(robot, legged.Spherical("a_hip"), parent="trunk", child="a_foot")
    with pytest.raises(UnknownNameError, match="method"):
        loops.solve(robots.four_bar(), np.zeros(3), np.zeros(3), np.zeros(3), method="guessing")


def test_inverse_kinematics_keeps_the_loops_closed():
    """The rocker's tip of a four-bar, and the platform of a delta, whose frames are those of the spanning tree."""
    closed = robots.four_bar()
    q = loops.assemble(closed, [1.0, -0.7, 1.5], hold=["crank joint"])
    goal = loops.assemble(closed, [1.4, -0.7, 1.5], hold=["crank joint"])
    ik = legged.InverseKinematics(closed, {"rocker": "orientation"})
    solution = ik.solve(q, {"rocker": legged.frame_pose(closed, goal, "rocker").rotation})
    assert np.abs(loops.residual(closed, solution.q)).max() < 1e-9
    assert solution.q == pytest.approx(goal, abs=1e-8)
    closed, q, rng = looped(4, legged.Revolute("joint", "y"))
    name = closed.robot.links[-1].name
    goal = loops.assemble(closed, legged.integrate(closed.robot, q, 0.1 * rng.normal(size=closed.robot.nv)))
    wanted = legged.frame_pose(closed, goal, name)
    solution = legged.InverseKinematics(closed, {name: "pose"}).solve(q, {name: tuple(wanted)})
    assert np.abs(loops.residual(closed, solution.q)).max() < 1e-9
    assert legged.frame_pose(closed, solution.q, name).position == pytest.approx(wanted.position, abs=2e-9)
    v = loops.consistent_velocity(closed, q, rng.normal(size=closed.robot.nv))
    assert legged.frame_jacobian(closed, q, name) @ v == pytest.approx(legged.frame_twist(closed, q, v, name))
    far = legged.InverseKinematics(robots.four_bar(), {"rocker": "position"})
    with pytest.raises(LeggedError, match="may be out of reach"):
        far.solve(loops.assemble(robots.four_bar(), [1.0, -0.7, 1.5]), {"rocker": (9.0, 0.0, 0.0)})


def test_projected_states_satisfy_the_constraints_and_stay_near():
    closed, q, rng = looped(4, legged.Universal("joint"))
    robot, off = closed.robot, 1e-3
    near = legged.integrate(robot, q, off * rng.normal(size=robot.nv))
    v = rng.normal(size=robot.nv)
    back, v_back = loops.project_state(closed, near, v, iterations=3)
    assert np.abs(loops.residual(closed, back)).max() < 1e-12  # 1e-3 squared three times
    assert np.abs(loops.jacobian(closed, back) @ v_back).max() < 1e-10
    assert legged.kinetic_energy(robot, back, v_back) <= legged.kinetic_energy(robot, back, v)
    assert np.abs(legged.difference(robot, near, back)).max() < 100 * off


def test_a_closed_robot_has_the_sizes_of_its_tree():
    closed = robots.four_bar()
    assert (closed.nq, closed.nv) == (closed.robot.nq, closed.robot.nv) == (3, 3)
