"""The warning that kinetic and potential energy minus all work rise, by `simulate`, `rollout` and `Simulation`."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import legged
from legged.errors import SimulationWarning
from legged.simulation.checks.energy import EnergyMonitor


def whip():
    """Return a chain of three rods on a fixed base."""
    builder, above = legged.RobotBuilder("whip", legged.Link("post"), base=legged.FixedBase()), "post"
    for k in range(3):
        link = legged.Link(f"rod{k}", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)))
        builder.add(legged.Revolute(f"joint{k}", "y"), link, to=above, at=(0.0, 0.0, -0.5 if k else 0.0))
        above = link.name
    return builder.build()


def moved(step):
    """Return the run of a fast motion, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = legged.simulate(
            whip(),
            q=[1.6, 0.0, 0.0],
            v=[0.0, 50.0, -80.0],
            until=0.5,
            ground=legged.Rigid(),
            integrator=legged.TimeStepping(step),
            compiled=False,
        )
    return run, [str(w.message) for w in caught if issubclass(w.category, SimulationWarning)]


def test_a_run_whose_energy_rises_warns_with_a_step_at_which_it_does_not():
    run, texts = moved(0.01)
    text = next(text for text in texts if "minus all work rise" in text)
    assert text in run.warnings
    share = float(re.search(r"(\d+) %", text)[1])
    assert share > 10.0
    balance = run.energy.balance
    rise = max(balance[k:].max() - balance[k] for k in range(len(balance)))
    assert float(re.search(r"rise by ([\d.e+-]+) J", text)[1]) == pytest.approx(rise, rel=5e-3)  # three digits
    step = float(re.search(r"step of ([\d.e-]+) s", text)[1])
    assert step <= 0.01 / share * 1.1  # of first order, for 1 %
    finer, texts = moved(step)
    assert not texts and not finer.warnings and np.isfinite(finer.q).all()


@pytest.mark.parametrize("way", ["simulate", "rollout", "step"])
def test_semi_implicit_steps_are_judged_with_and_without_work_of_motors(way):
    """A chain of rods in free flight; the work of a torque of 1 nN m explains nothing."""
    options = {"q": [1.6, 0.0, 0.0], "v": [0.0, 50.0, -80.0], "integrator": legged.SemiImplicitEuler(0.01)}
    for law in (None, lambda t, q, v, w: np.array([0.0, 1e-9, 0.0])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if way == "step":
                sim = legged.Simulation(whip(), law, **options)
                for _ in range(50):
                    sim.step()
                assert not sim._robots.energy.is_judged  # warned once
            else:
                getattr(legged, way)(whip(), law, until=0.5, **options)
        assert any("minus the work of motors and pushes" in str(warning.message) for warning in caught)


START = {"q": [1.6, 0.0, 0.0], "v": [0.0, 50.0, -80.0], "ground": legged.Rigid()}


def test_energy_from_contacts_and_stops_counts_in_semi_implicit_steps_but_what_they_return_does_not():
    """The ground takes 90 J of 100 J and returns 60; wrong works of a contact and a stop explain no rise to 150 J."""
    loop = SimpleNamespace(robot=whip())
    energies = np.array([100.0, 100.0, 10.0, 70.0, 70.0])
    for rise, is_warned in ((0.0, False), (80.0, True)):
        monitor, works = EnergyMonitor(loop, legged.SemiImplicitEuler(1e-3)), np.zeros((5, 1, 4))
        works[2:, 0, 1], works[2:, 0, 3] = (-30.0, 0.0) if not is_warned else (-5000.0, 5080.0)
        both = np.stack([energies + rise * (np.arange(5) > 3), np.zeros(5)], axis=-1)[:, None]
        monitor.add(both, works, np.ones((5, 1), dtype=bool))
        text = monitor.warning()[1]
        assert is_warned == bool(text)
        assert not is_warned or "rise by 50 J, 33 % of the 150 J" in text


@pytest.mark.parametrize("num", [None, 3])
def test_a_simulation_warns_once_and_not_with_the_step_that_it_names(num):
    """The third robot alone is slow enough for its step."""
    v = START["v"] if num is None else [[0.0, 50.0, -80.0], [0.0, 50.0, -80.0], [0.0, 0.0, 0.0]]
    options = START | {"v": v, "num": num}
    sim = legged.Simulation(whip(), **options, integrator=legged.TimeStepping(0.01))
    with pytest.warns(SimulationWarning, match="minus all work rise") as caught:
        for _ in range(50):
            sim.step()
    assert len(caught) == 1 and sim.warnings == (str(caught[0].message),)
    assert (num is None) != sim.warnings[0].startswith("robot 0: ")
    step = float(re.search(r"step of ([\d.e-]+) s", sim.warnings[0])[1])
    finer = legged.Simulation(whip(), **options, integrator=legged.TimeStepping(step))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            finer.step(n=round(0.01 / step))


def test_a_reset_and_other_masses_change_no_balance():
    """Energy is not conserved by `reset`, `change` and a state that is restored, which are no motion."""
    sim = legged.Simulation(whip(), **START, integrator=legged.TimeStepping(1e-4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(12):
            sim.step(n=400)
            sim.reset([1.6, 0.0, 0.0], [0.0, 5.0 * k, -5.0 * k])
        sim.step(n=2000)
        sim.change({"robot.rod2.mass": 3.0})
        state = sim.state
        sim.step(n=2000)
        sim.reset([1.6, 0.0, 0.0])
        sim.step(n=2000)
        sim.state = state
        sim.step(n=2000)


def test_the_energies_of_robots_are_those_with_their_own_masses():
    masses = {"robot.rod1.mass": [1.0, 4.0]}  # [kg]
    sim = legged.Simulation(whip(), ground=legged.Rigid(), num=2, vary=masses, q=[1.6, 0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(n=1500)
    for i, mass in enumerate(masses["robot.rod1.mass"]):
        options = {"ground": legged.Rigid(), "q": [1.6, 0.0, 0.0], "until": 1.5}
        run = legged.simulate(whip().with_parameters({"rod1.mass": mass}), **options)
        energies = sim._robots.energies(sim._robots.members.state)[i]
        assert energies == pytest.approx([run.energy.kinetic[-1], run.energy.potential[-1]], abs=1e-6)


def test_a_rollout_names_the_members_whose_energy_rises_and_a_step_at_which_it_does_not():
    """Members 0 and 2 are slow enough for their step."""
    slow, fast = [0.0, 0.0, 0.0], [0.0, 50.0, -80.0]
    options = START | {"v": [slow, fast, slow, fast], "until": 0.5}
    with pytest.warns(SimulationWarning, match="minus all work rise") as caught:
        runs = legged.rollout(whip(), **options, integrator=legged.TimeStepping(0.01))
        alone = legged.rollout(whip(), **options | {"v": fast}, integrator=legged.TimeStepping(0.01))
    assert runs.warnings == (f"member 1: {alone.warnings[0]}; so do those of members 3",)
    assert [str(warning.message) for warning in caught] == [*runs.warnings, *alone.warnings]
    assert moved(0.01)[0].warnings == alone.warnings
    step = float(re.search(r"step of ([\d.e-]+) s", runs.warnings[0])[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        legged.rollout(whip(), **options, integrator=legged.TimeStepping(step))


def spinning_boxes():
    """Return three boxes in a chain, and two velocities, the second one too fast for steps of 10 ms."""
    builder, above = legged.RobotBuilder("boxes", legged.Link("box0", legged.box_inertia(1.0, (0.1, 0.1, 0.5)))), "box0"
    for k in (1, 2):
        link = legged.Link(f"box{k}", legged.box_inertia(1.0, (0.1, 0.1, 0.5), center=(0.0, 0.0, -0.25)))
        builder.add(legged.Revolute(f"joint{k}", "y"), link, to=above, at=(0.0, 0.0, -0.5 if k > 1 else -0.25))
        above = link.name
    robot = builder.build()
    q, v = robot.neutral(), np.zeros((2, robot.nv))
    q[6], v[1, -1] = 10.0, 100.0
    return robot, q, v


def test_the_energy_of_members_that_fall_is_not_judged():
    """The trunk falls by 1.4 m within 0.6 s; without a limit, the robot moves on in the air."""
    robot, q, v = spinning_boxes()
    options = {"q": q, "v": v, "until": 0.6, "ground": legged.Rigid(), "integrator": legged.TimeStepping(0.01)}
    runs = legged.rollout(robot, fall=legged.Fall(height=0.862, tilt=3.2), **options)
    assert runs.fallen.all() and not (runs.warnings or runs.run(1).warnings)
    with pytest.warns(SimulationWarning, match="member 1: .* minus all work rise by"):
        runs = legged.rollout(robot, fall=False, **options | {"until": 0.4})
    assert not runs.fallen.any()


@pytest.mark.parametrize(
    ("file", "count", "step", "most"),
    [("go2/go2", 48, 4e-3, 0.05), pytest.param("g1/g1_29dof_rev_1_0", 8, 1e-3, 0.05, marks=pytest.mark.slow)],
    ids=["Go2", "G1"],
)
def test_falls_that_drive_joints_against_their_stops_gain_no_energy_in_long_steps(file, count, step, most):
    """Contact forces of the last step, which may be those of an impact, must not set velocities of gyroscopic terms.

    Energy may rise by a few percent of the largest kinetic energy, an error of the first order in the step.
    """
    from oracles.urdfs import all_urdfs

    path = next((path for name, path in all_urdfs().items() if name.startswith(file)), None)
    if path is None:
        pytest.skip("no example-robot-data")
    robot, rng = legged.load(path), np.random.default_rng(0)
    q, v = np.tile(robot.neutral(), (count, 1)), np.zeros((count, robot.nv))
    q[:, :4] = rng.normal(size=(count, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1)[:, None]
    for k, joint in enumerate(robot.joints, 7):
        stops = joint.definition.physics
        q[:, k] = rng.uniform(float(stops.lower) + 1e-3, float(stops.upper) - 1e-3, count)
    ground = legged.Rigid(0.6)
    scene = legged.contact.Scene.of(robot, ground)
    q[:, 6] -= [scene.contact_geometry([x]).gap.min() - rng.uniform(0.1, 0.5) for x in q]
    v[:, :3], v[:, 6:] = 3.0 * rng.normal(size=(count, 3)), 3.0 * rng.normal(size=(count, robot.nv - 6))
    integrator = legged.TimeStepping(step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = legged.rollout(robot, q=q, v=v, until=1.0, ground=ground, integrator=integrator, fall=False)
    assert not runs.warnings and np.isfinite(runs.q).all()
    for run in map(runs.run, range(count)):
        balance = run.energy.balance
        rise = (np.maximum.accumulate(balance[::-1])[::-1] - balance).max()
        assert rise < most * run.energy.kinetic.max()
