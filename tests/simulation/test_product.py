"""Every way to run x gait x ground x law: finite and equal to `simulate` up to rounding, or a documented error."""

import itertools
from functools import cache, partial

import numpy as np
import pytest

import controllers
import legged
import robots
from examples.studies.balance.disturbance_map import Pushes, disturbance_map
from legged.contact import Rigid
from legged.errors import DefinitionError
from legged.ground import Stairs, realistic_ground

UNTIL, STEP = 0.004, 1e-3
GAITS = ("closed form", "fitted to a file")
GROUNDS = ("compliant", "rigid", "terrain", "none")
LAWS = {
    "computed torque": controllers.ComputedTorque,
    "feed forward": controllers.FeedForward,
    "servo": controllers.JointPD,
    "integral servo": controllers.JointPID,
    "balanced": controllers.Balanced,
}
WRAPPED = {"plain": lambda law: law, "held": lambda law: controllers.ZeroOrderHold(law, rate=500.0)}
REFUSED = {("feed forward", "rigid"): "FeedForward needs a compliant ground"}
DAILY = {
    ("closed form", "compliant", "computed torque", "held"),
    ("closed form", "terrain", "integral servo", "plain"),
    ("closed form", "rigid", "feed forward", "plain"),
    ("fitted to a file", "none", "servo", "held"),
    ("fitted to a file", "terrain", "servo", "plain"),
    ("fitted to a file", "rigid", "integral servo", "held"),
}
"""The quick part: each gait, ground and hold with several others."""


@pytest.fixture(scope="module")
def file_robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "robot.urdf"
    legged.save_urdf(robots.spatial_quadruped(), path)
    return legged.load(path)


@cache
def plan(gait, robot):
    return (
        controllers.Trot(period=0.4, stride=0.1)
        if gait == "closed form"
        else controllers.suited(controllers.Trot, robot)
    )


def law_of(name, gait, robot):
    """Return a law with gains for steps of 1 ms."""
    motion, kind = plan(gait, robot), LAWS[name]
    if name in ("servo", "integral servo", "feed forward"):
        return kind(motion, kp=40.0, kd=0.5)
    return kind(motion)


def ground_of(name, robot):
    """Return a ground of a kind."""
    if name == "terrain":
        return realistic_ground(robot, terrain=Stairs((0.3, 5.0), (1e-3, 0.1)))  # [m]; the fore feet are 1 mm deep
    if name == "rigid":
        return Rigid(friction=0.7)
    return None if name == "none" else realistic_ground(robot)


def cases():
    """Yield each combination, marked as slow unless it is in the daily part."""
    for gait, ground, law, wrapped in itertools.product(GAITS, GROUNDS, LAWS, WRAPPED):
        marks = () if (gait, ground, law, wrapped) in DAILY else pytest.mark.slow
        yield pytest.param(gait, ground, law, wrapped, marks=marks, id=f"{gait}-{ground}-{law}-{wrapped}")


@pytest.mark.parametrize(("gait", "ground", "name", "wrapped"), list(cases()))
def test_every_combination_runs_alike_in_simulations_rollouts_and_maps(gait, ground, name, wrapped, file_robot):
    robot = robots.spatial_quadruped() if gait == "closed form" else file_robot
    law, floor = WRAPPED[wrapped](law_of(name, gait, robot)), ground_of(ground, robot)
    rigid = isinstance(floor, Rigid)
    integrator = legged.TimeStepping(STEP) if rigid else legged.SemiImplicitEuler(STEP)
    options = {"ground": floor, "until": UNTIL, "sample": 2 * STEP, "integrator": integrator}
    pushes = Pushes(legged.Push(robot.links[0].name, (0.0, 0.0, 0.0), at=0.0, duration=UNTIL), [0.1, 0.2])
    simulate = partial(legged.simulate, robot, law, **options)
    rollout = partial(legged.rollout, robot, law, compiled=True, **options)
    push_map = partial(disturbance_map, robot, law, pushes, directions=3, **options)
    if (name, ground) in REFUSED:
        for way in (simulate, rollout, push_map):
            with pytest.raises(DefinitionError, match=REFUSED[name, ground]):
                way()
        return
    run, one, mapped = simulate(), rollout(), push_map()
    assert run.backend == "compiled closed loop" and "compiled time steps" in mapped.runs.backend
    assert len(run) == 3 and np.isfinite(run.q).all() and np.isfinite(run.tau).all() and np.isfinite(run.memory).all()
    for runs, i in ((one, 0), (mapped.runs, -1)):  # the last member of a map is not pushed
        assert not runs.fallen[i]
        np.testing.assert_allclose(runs.q[i], run.q, atol=1e-11)
        np.testing.assert_allclose(runs.v[i], run.v, atol=1e-8)  # [rad/s], of about 1
    pushed = mapped.runs.v[:-1, -1] - mapped.runs.v[-1, -1]
    assert np.isfinite(pushed).all() and (np.abs(pushed).max(axis=1) > 1e-4).all()
