"""Time steps of scenes in parts that machine code takes one after the other: the same states in all bits."""

from dataclasses import replace

import numpy as np
import pytest

import legged
from legged.contact import Box, Capsule, FreeBody, Rigid, Sphere
from legged.rotations import quaternion_matrix
from legged.simulation.controller import adapt
from legged.simulation.loop.rigid_loop import ContactMemory
from legged.simulation.many_contacts import SceneInParts

STEP = 1e-3  # [s]
CUBE = legged.box_inertia(1.0, (0.1, 0.1, 0.1))


def cube():
    """A robot without joints, with a shape for bodies and contact points for the terrain."""
    corners = {f"corner{k}": (0.05 - 0.1 * (k % 2), 0.05 - 0.1 * (k // 2), -0.05) for k in range(4)}
    return legged.RobotBuilder("cube", legged.Link("cube", CUBE, corners, [Box((0.1, 0.1, 0.1))])).build()


def heap(seed, count=12):
    """Boxes, spheres and capsules that fall on each other."""
    rng, bodies = np.random.default_rng(seed), []
    for k in range(count):
        shape = [Box((0.12, 0.1, 0.08)), Sphere(0.05), Capsule(0.04, 0.1)][k % 3]
        place = 0.17 * (k % 2), 0.17 * (k // 2 % 2), 0.2 + 0.17 * (k // 4)
        turn, velocity = rng.normal(size=4), (*0.3 * rng.normal(size=2), -1.0)
        bodies.append(FreeBody(f"b{k}", CUBE, [shape], place, turn / np.linalg.norm(turn), velocity))
    return bodies


def tower(count=7):
    """Boxes at rest on each other, of which the robot is the lowest one."""
    return [FreeBody(f"b{k}", CUBE, [Box((0.1, 0.1, 0.1))], (0.0, 0.0, 0.15 + 0.1 * k)) for k in range(count)]


def simulation(bodies, controller=None, ground=None):
    robot = cube()
    q, options = robot.neutral(), {"integrator": legged.TimeStepping(STEP), "fall": False, "bodies": bodies}
    q[6] = 0.05
    return legged.Simulation(robot, controller, ground=Rigid(0.5) if ground is None else ground, q=q, **options)


def numbers(state):
    return np.concatenate([state.q, state.v, state.rest])


@pytest.fixture
def taken(monkeypatch):
    """Numbers of the steps that are taken one by one."""
    found, step = [], SceneInParts.impact_step

    def impact_step(self, t, *arguments):
        found.append(round(t / STEP))
        return step(self, t, *arguments)

    monkeypatch.setattr(SceneInParts, "impact_step", impact_step)
    return found


@pytest.fixture
def one_by_one(monkeypatch):
    """A function that lets all steps be taken one by one."""
    return lambda: monkeypatch.setattr(SceneInParts, "advance", lambda self, t, h, first, count, q, s: (first, q, s))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1, 7])
def test_states_are_those_of_steps_one_by_one_in_all_bits(seed, n, taken, one_by_one):
    states = []
    for in_machine_code in (True, False):
        if not in_machine_code:
            one_by_one()
        sim = simulation(heap(seed))
        taken.clear()
        rows = []
        for _ in range(280 // n):
            sim.step(n=n)
            rows.append(numbers(sim.state))
        states.append(np.array(rows))
        assert (20 < len(taken) < 270) if in_machine_code else len(taken) == 280  # contacts open and close
    np.testing.assert_array_equal(*states)


def test_a_tower_at_rest_takes_all_steps_but_the_first_in_machine_code(taken):
    bodies = tower()
    sim = simulation(bodies)
    sim.step(n=200)
    assert max(taken) < 5
    state = sim.state
    memory = ContactMemory.of(sim.loop.split(np.concatenate([state.v, state.rest])).ground_memory)
    assert memory.worst < 1e-5  # [m/s], the tolerance of the law
    weight = 9.81 * 8 * STEP * 200  # [N s]
    np.testing.assert_allclose(memory.impulse[:4, 2].sum(), weight, rtol=1e-6)  # of the ground on the lowest box


def test_other_states_need_no_other_calls(taken):
    """A state that is set is checked as all others: the step in which the top is lifted is that of a fresh scene."""
    bodies, rows = tower(), []
    for warm in (True, False):
        sim = simulation(bodies)
        if warm:
            start = sim.state
            sim.step(n=20)
            sim.state = start
        raised = sim.state
        raised.rest[-7] += 0.3  # [m], height of the last body
        sim.state = raised
        sim.step(n=5)
        rows.append(numbers(sim.state))
    np.testing.assert_array_equal(*rows)


def test_bodies_that_come_near_meet(one_by_one, taken):
    """Two balls in free flight are not near at the start: nothing but their distance ends the steps in machine code."""
    places = [(x, 0.0, 3.0) for x in (1.0, 1.5)]
    balls = [FreeBody(f"ball{k}", CUBE, [Sphere(0.05)], place) for k, place in enumerate(places)]
    balls[0] = replace(balls[0], velocity=(3.0, 0.0, 0.0))  # [m/s]
    rows = []
    for in_machine_code in (True, False):
        if not in_machine_code:
            one_by_one()
        sim = simulation([*tower(), *balls])
        sim.step(n=150)
        rows.append(numbers(sim.state))
        assert rows[-1][-3] > 1.0  # [m/s], the second ball has been hit
        assert (len(taken) < 75) == in_machine_code
    np.testing.assert_array_equal(*rows)


def test_motions_without_a_finite_result_end_as_steps_one_by_one_do(one_by_one):
    found = []
    for in_machine_code in (True, False):
        if not in_machine_code:
            one_by_one()
        sim = simulation(tower())
        sim.step(n=10)
        state = sim.state
        state.v[:] = 1e200  # [rad/s] and [m/s]
        sim.state = state
        sim.step(n=3)
        found.append((bool(sim.ended), sim.reasons, numbers(sim.state).tobytes()))
    assert found[0][0] and found[0] == found[1]


def test_controllers_and_restitution_take_their_steps_one_by_one(taken):
    seen = []

    def law(t, q, v, wrenches):
        seen.append(t)
        return np.zeros(0)

    simulation(tower(), law).step(n=20)
    assert len(taken) == 20 and len(seen) >= 20
    taken.clear()
    simulation(tower(), ground=Rigid(0.5, restitution=0.3)).step(n=20)
    assert len(taken) == 20


@pytest.mark.parametrize("case", [16, 23, 39])
def test_reported_impulses_with_a_share_of_restitution_are_those_that_act(case):
    """A rod whose sliding end sticks in an oblique impact would gain energy with all of the restitution."""
    rng = np.random.default_rng(case)
    angle, vx, turn = rng.uniform(0.2, 1.3), rng.uniform(-3, 3), rng.uniform(-5, 5)
    at, quaternion = (3.0, 0.0, 0.5 * np.cos(angle) + 0.021), (np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0)
    inertia, shape = legged.box_inertia(1.0, (0.02, 0.02, 1.0)), Capsule(0.02, 1.0)
    rod = FreeBody("rod", inertia, [shape], at, quaternion, (vx, 0.0, -2.0), (0.0, turn, 0.0))
    robot, ground = cube(), Rigid(1.0, restitution=0.9)
    q, v = robot.neutral(), np.zeros(6)
    q[6] = 5.0
    started, memory = adapt(None).start(robot, ground, q, v)
    loop = SceneInParts(robot, started, ground, len(memory), (), [], [rod])
    s, h = loop.initial(v, memory), 2e-3
    q_next, s_next = loop.time_stepping(0.0, h, 0, q, s)
    momentum = []
    for state in ((q, s), (q_next, s_next)):
        x, v = loop.states(*state)[1]
        momentum.append(quaternion_matrix(x[:4]) @ v[3:])
    impulse = ContactMemory.of(loop.split(s_next).ground_memory).impulse.sum(axis=0)
    assert impulse[2] > 1.0  # [N s]
    np.testing.assert_allclose(impulse, momentum[1] - momentum[0] + [0.0, 0.0, 9.81 * h], atol=1e-12)
