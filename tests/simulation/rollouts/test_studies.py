"""Studies of many members: each distinct law starts once, Ctrl-C keeps what has started, and results become tables."""

import csv
from dataclasses import dataclass

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import ArgumentError, SimulationInterrupt
from legged.simulation.stepping import stepper
from tests.simulation.stepping.hopper_laws import EULER, SPRINGS

COUNT = 6
ROUNDING = 1e-12  # relative: the same products and sums in other lanes, over a few steps


@dataclass(frozen=True, eq=False)
class Counted:
    """A law that counts its starts, and keeps what `of` takes from the robot and the state at the start."""

    starts: list
    of: object
    gain: float = 2.0

    def start(self, robot, ground, q, v):
        self.starts.append(1)
        return Servo(self.gain, np.asarray(self.of(self, q, v))), np.zeros(0)


@dataclass(frozen=True, eq=False)
class Servo:
    gain: float
    targets: np.ndarray

    def torque(self, t, phase, q, v, wrenches, memory):
        return self.gain * (self.targets - q[3:]) - 0.1 * v[3:]


def nothing(law, q, v):
    return np.array([0.1, 0.02])


def configuration(law, q, v):
    return q[3:].copy()


def branch(law, q, v):
    """Depends on the configuration for some velocities alone."""
    return q[3:].copy() if v[0] > 0.0 else np.array([0.1, 0.02])


def gained(law, q, v):
    return law.gain * np.array([0.1, 0.02])


def members():
    rng, robot = np.random.default_rng(0), robots.planar_hopper()
    q = np.tile(robot.neutral(), (COUNT, 1))
    q[:, 2] = 2.0  # [m], above the ground
    q[:, 3:] += 0.1 * rng.normal(size=(COUNT, 2))
    return robot, q, 0.1 * rng.normal(size=(COUNT, robot.nv))


LAWS = {
    "nothing": (nothing, 2),  # starts of different configurations and velocities: one, and one that is traced
    "configuration": (configuration, COUNT),
    "branch": (branch, COUNT),
    "gained": (gained, 2),
}


@pytest.mark.parametrize("name", LAWS)
def test_members_share_a_start_where_nothing_differs_and_equal_single_runs(name):
    of, least = LAWS[name]
    robot, q, v = members()
    starts = []
    law = Counted(starts, of)
    options = {"until": 0.01, "sample": 0.01, "integrator": EULER, "ground": SPRINGS, "fall": False}
    runs = legged.rollout(robot, law, q=q, v=v, compiled=True, **options)
    assert least <= len(starts) <= 2 + (0 if least == 2 else 2 * COUNT + 1)
    for i in range(COUNT):
        run = legged.simulate(robot, Counted([], of), q=q[i], v=v[i], **options)
        assert np.abs(runs.v[i, -1] - run.v[-1]).max() < ROUNDING * (1.0 + np.abs(run.v).max())


@pytest.mark.parametrize("varied", ["pushes", "equal states", "velocities"])
def test_a_study_of_equal_laws_starts_one(varied):
    robot, q, v = members()
    starts, vary = [], {}
    options = {"until": 0.01, "integrator": EULER, "ground": SPRINGS, "fall": False, "q": q[0], "compiled": True}
    if varied == "pushes":
        options["pushes"] = [legged.Push("trunk", (0.0, 0.0, 0.0), at=0.002)]
        vary = {"pushes.0.impulse": np.random.default_rng(0).normal(size=(COUNT, 3)) * [1.0, 0.0, 1.0]}
    elif varied == "equal states":
        options |= {"q": np.tile(q[0], (COUNT, 1)), "v": np.tile(v[0], (COUNT, 1))}
    else:
        options["v"] = v
    of = configuration
    legged.rollout(robot, Counted(starts, of), vary=vary, **options)
    assert len(starts) <= (1 if varied != "velocities" else 4)  # of velocities: traced from both, and from one


@pytest.mark.parametrize("gains", [np.full(COUNT, 3.0), np.linspace(1.0, 3.0, COUNT)])
def test_each_distinct_parameter_starts_once(gains):
    robot, q, _ = members()
    starts = []
    options = {"until": 0.01, "sample": 0.01, "integrator": EULER, "ground": SPRINGS, "fall": False, "q": q[0]}
    runs = legged.rollout(robot, Counted(starts, gained), vary={"controller.gain": gains}, compiled=True, **options)
    assert len(starts) == len(set(gains.tolist()))
    for i, gain in enumerate(gains.tolist()):
        run = legged.simulate(robot, Counted([], gained, gain), **options)
        assert np.abs(runs.v[i, -1] - run.v[-1]).max() < ROUNDING * (1.0 + np.abs(run.v).max())


def test_resets_of_a_simulation_start_laws_from_their_states():
    robot, q, v = members()
    starts = []
    sim = legged.Simulation(robot, Counted(starts, nothing), q=q, v=v, num=COUNT, ground=SPRINGS, integrator=EULER)
    sim.step()
    known = len(starts)
    for i in range(3):
        sim.reset(q[::-1].copy(), v + 0.01 * i)
        sim.step()
    assert len(starts) == known


def test_laws_of_locomotion_share_what_the_robot_determines():
    """A study of commands equals single runs; the posture and the sizes of problems are found once."""
    robot = robots.spatial_quadruped()
    laws = [controllers.Locomotion("trot", controllers.Command(vx=vx), friction=0.5) for vx in (0.1, 0.2)]
    first, second = (law.start(robot, None, *law.initial_state(robot)) for law in laws)
    assert first[0].planner is second[0].planner and first[0].commands.vx == 0.1 and second[0].commands.vx == 0.2
    lowered = controllers.Locomotion("trot", home=first[0].home)
    assert lowered.start(robot, None, *lowered.initial_state(robot))[0].planner is not first[0].planner


class Interrupted:
    """A law whose start is interrupted the third time."""

    parameter_names = ("gain",)

    def __init__(self, gain=2.0, starts=None):
        self.gain, self.starts = gain, [] if starts is None else starts

    def start(self, robot, ground, q, v):
        self.starts.append(1)
        if len(self.starts) == 3:
            raise KeyboardInterrupt
        return Servo(self.gain, np.zeros(2)), np.zeros(0)


def test_ctrl_c_at_the_start_keeps_the_members_that_have_started(tmp_path):
    robot, q, _ = members()
    law, vary = Interrupted(), {"controller.gain": np.linspace(1.0, 2.0, COUNT)}
    with pytest.raises(SimulationInterrupt, match="before 6 of 6 members ended") as error:
        legged.rollout(robot, law, q=q[0], until=0.01, vary=vary, integrator=EULER, ground=SPRINGS)
    runs = error.value.run
    assert np.isfinite(runs.q[:, 0]).all(axis=1).tolist() == [True, True, *[False] * (COUNT - 2)]
    assert set(runs.reasons) == {"interrupted"} and not runs.when.any() and not runs.fallen.any()
    assert np.array_equal(runs.q[1, 0], q[0]) and len(runs.run(1)) == 1
    with pytest.raises(ArgumentError, match="member 4 has no states"):
        runs.run(4)
    assert len(legged.Rollouts.load(runs.save(tmp_path / "runs"))) == COUNT


def test_ctrl_c_while_the_steps_are_compiled_keeps_the_initial_states(monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(stepper, "CompiledEngine", interrupted)
    robot, q, v = members()
    with pytest.raises(SimulationInterrupt) as error:
        legged.rollout(robot, q=q, v=v, until=0.01, integrator=EULER)
    assert np.array_equal(error.value.run.v[:, 0], v) and np.isnan(error.value.run.v[:, 1:]).all()


def study():
    robot, q, v = members()
    vary = {"robot.trunk.mass": np.linspace(4.0, 5.0, COUNT), "pushes.0.impulse": np.tile([0.1, 0.0, 0.2], (COUNT, 1))}
    pushes = [legged.Push("trunk", (0.0, 0.0, 0.0), at=0.005)]
    return legged.rollout(robot, q=q, v=v, until=0.02, vary=vary, pushes=pushes, integrator=EULER, fall=False)


def test_tables_have_a_row_per_member_and_sample(tmp_path):
    pandas = pytest.importorskip("pandas")
    runs = study()
    runs.q[2, 2:] = np.nan  # as after the end of a member
    frame, last = runs.to_pandas(), runs.to_pandas(last=True)
    assert len(frame) == COUNT * 3 - 1 and len(last) == COUNT and isinstance(frame, pandas.DataFrame)
    assert last.t.tolist() == [0.02, 0.02, 0.01, 0.02, 0.02, 0.02]
    assert np.array_equal(last["robot.trunk.mass"], runs.vary["robot.trunk.mass"])
    assert np.array_equal(last["pushes.0.impulse[2]"], np.full(COUNT, 0.2))
    assert np.array_equal(last["slide_q"], [*runs.q[:2, 2, 4], runs.q[2, 1, 4], *runs.q[3:, 2, 4]])
    run = runs.run(1).to_pandas()
    own = frame[frame.member == 1].reset_index()
    shared = [name for name in run if name in frame]
    assert {"t", "hip_q", "slide_v", "base_q[0]", "base_v[2]", "base_x"} <= set(shared)
    for name in shared:
        assert np.abs(own[name] - run[name]).max() == 0.0
    with runs.to_csv(tmp_path / "runs").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(frame) and len(rows) == len(frame)
    assert [float(row["hip_q"]) for row in rows] == frame["hip_q"].tolist()
    assert runs.to_csv(tmp_path / "last", last=True).read_text().count("\n") == COUNT + 1
