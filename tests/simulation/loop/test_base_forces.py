"""Forces that a law or a command asks for a base without motors: left out and reported, in every door and engine."""

import warnings

import numpy as np
import pytest

import legged
from legged.errors import SimulationWarning

MASS = 2.5  # [kg], of the robot
TEXT = "forces for the base of 'hopper', on which no motor acts"


def hopper(base=None):
    trunk = legged.Link("trunk", legged.box_inertia(2.0, (0.3, 0.3, 0.1)))
    builder = legged.RobotBuilder("hopper", trunk, **({} if base is None else {"base": base}))
    leg = legged.Link("leg", legged.box_inertia(0.5, (0.1, 0.1, 0.3), (0, 0, -0.15)))
    return builder.add(legged.Revolute("hip", "y"), leg, to="trunk").build()


def lift(t, q, v, wrenches):
    """Carry the weight by a force on the base, along world z as long as it is level."""
    return np.concatenate([np.zeros(5), np.stack([MASS * 9.81 + 0.0 * q[6]]), np.zeros(1)])


def advance(door, robot, law, compiled):
    """Return the height of the base after 0.2 s, and the warnings that the result holds and that were given."""
    options = {"integrator": legged.SemiImplicitEuler(1e-3), "compiled": compiled, "fall": False}
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        if door == "simulate":
            result = legged.simulate(robot, law, until=0.2, **options)
            height = result.q[-1, 6]
            assert not result.tau[:, :6].any()
        elif door == "rollout":
            result = legged.rollout(robot, law, until=0.2, q=np.stack([robot.neutral()] * 2), **options)
            height = result.q[1, -1, 6]
            assert result.run(1).warnings == result.warnings
        else:
            result = legged.Simulation(robot, law, **options)
            for _ in range(20):
                result.step(n=10)
            height = result.q[6]
    return height, result.warnings, [str(w.message) for w in given if issubclass(w.category, SimulationWarning)]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("door", ["simulate", "rollout", "Simulation"])
def test_a_law_cannot_lift_a_free_base_and_the_user_is_told(door, compiled):
    height, kept, given = advance(door, hopper(), lift, compiled)
    assert height == pytest.approx(-0.5 * 9.81 * 0.2**2, rel=0.01)  # free fall, semi-implicit: 1 / 200 too deep
    assert len(kept) == 1 and TEXT in kept[0] and "24.5 N or N m in entry 5" in kept[0]
    assert set(given) == set(kept)


@pytest.mark.parametrize("door", ["simulate", "rollout", "Simulation"])
@pytest.mark.parametrize(
    "law",
    [
        lambda t, q, v, w: np.stack([0.1 * v[6]]),
        lambda t, q, v, w: np.concatenate([np.zeros(6), np.stack([3.0 + 0.0 * t])]),
        lambda t, q, v, w: np.concatenate([np.full(6, 1e-9), np.stack([30.0 + 0.0 * t])]),  # rounding of a solution
    ],
)
def test_laws_of_joint_forces_are_not_reported(door, law):
    assert advance(door, hopper(), law, None)[1:] == ((), [])


def test_a_fixed_base_and_a_base_of_joints_keep_all_forces():
    robot = hopper(legged.FixedBase())
    run = legged.simulate(robot, lambda t, q, v, w: np.array([2.0]) + 0.0 * v, until=0.1)
    assert run.tau == pytest.approx(2.0) and run.warnings == ()
    lifted = legged.RobotBuilder("lift", legged.Link("wall"), base=legged.FixedBase())
    lifted = lifted.add(legged.Prismatic("z", "z"), legged.Link("cart", legged.box_inertia(MASS, (1, 1, 1))), to="wall")
    run = legged.simulate(lifted.build(), lambda t, q, v, w: np.array([MASS * 9.81]) + 0.0 * v, until=0.2)
    assert run.q[-1, 0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_command_for_the_base_is_left_out_and_reported_once(compiled):
    robot = hopper()
    command = np.zeros((2, 7))
    command[1, 5] = 100.0
    sim = legged.Simulation(robot, num=2, compiled=compiled, integrator=legged.SemiImplicitEuler(1e-3))
    with pytest.warns(SimulationWarning, match="the controller returns forces for the base") as given:
        for _ in range(5):
            sim.step(command, n=20)
    assert len(given) == len(sim.warnings) == 1
    assert sim.q[0, 6] == sim.q[1, 6]


@pytest.mark.parametrize("laws", [lambda law: {"one": law}, lambda law: law], ids=["of the robot", "of the group"])
def test_the_bases_of_a_group_have_no_motors_either(laws):
    group = legged.combine({"one": hopper()})

    def whole(t, q, v, wrenches):
        return np.concatenate([np.stack([0.0 * t, 0.0 * t, MASS * 9.81 + 0.0 * t]), np.zeros(4)])

    law = laws(lift) if isinstance(laws(lift), dict) else whole
    with pytest.warns(SimulationWarning, match="on which no motor acts"):
        run = legged.simulate(group, law, until=0.2, integrator=legged.SemiImplicitEuler(1e-3))
    assert np.abs(run.v).max() == pytest.approx(9.81 * 0.2, rel=1e-6)
