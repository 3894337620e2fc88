"""Limits of feet and motors: they hold, are inactive where they are not reached, and always leave a solution."""

import builtins
from functools import cache

import numpy as np
import pytest

import legged
import robots
from controllers import Limits, WorkspaceBalance
from legged.errors import DefinitionError, LeggedError, MissingError
from robots.bipeds import crouch

pytest.importorskip("daqp")
ROOM = 1e-6  # of weight: the solver's tolerance, and what it costs that forces of points are priced at all


@cache
def biped():
    return robots.spatial_biped()


def plans(limits, q=None, v=None, **settings):
    """Return the plans with and without limits, and the limited law."""
    robot = biped()
    start = crouch(robot)
    q, v = start.q if q is None else q, start.v if v is None else v
    planned = []
    for limit in (limits, None):
        law = WorkspaceBalance(limits=limit, **{"position": (0.01, 0.0, 1.14)} | settings)
        law, _ = law.start(robot, None, *start)
        planned.append(law.plan(0.0, q, v))
    return planned


def in_the_world(plan, q):
    """Return the feet's wrenches at their middles, [n; f], world axes, (feet, 6)."""
    R, _ = biped().base.pose(q[:7])
    return np.array([np.kron(np.eye(2), R) @ f for f in plan.forces])


def moved(seed, amount):
    robot, rng = biped(), np.random.default_rng(seed)
    q, _ = crouch(robot)
    return legged.integrate(robot, q, amount * rng.normal(size=robot.nv)), amount * rng.normal(size=robot.nv)


@pytest.mark.parametrize("weights", [None, {"left_foot_7": 1.2, "right_foot_13": (0.5, 1.0)}])
def test_with_room_it_is_the_distribution_of_least_norm(weights):
    limited, free = plans(Limits(friction=2.0, torques=False), weights=weights)
    weight = 9.81 * biped().mass
    assert np.abs(np.array(limited.forces) - free.forces).max() < ROOM * weight
    assert np.abs(limited.tau - free.tau).max() < ROOM * weight
    for part in ("P", "z", "acceleration", "wrench"):
        assert getattr(limited, part) == pytest.approx(getattr(free, part), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("friction", [0.05, 0.3, 0.8])
def test_feet_neither_pull_nor_slide_nor_tip(seed, friction):
    q, v = moved(seed, 0.15)
    limited, free = plans(Limits(friction=friction, torques=False), q, v)
    robot, weight = biped(), 9.81 * biped().mass
    rotations, _ = legged.link_poses(robot, q)
    for foot, wrench in zip((6, 12), in_the_world(limited, q), strict=True):
        n, f = wrench[:3], wrench[3:]
        assert f[2] > -ROOM * weight
        assert np.hypot(f[0], f[1]) < friction * f[2] + ROOM * weight
        # The center of pressure is in the sole's shadow: no corner of it is passed.
        sole = np.array([c.position for c in robot.contacts if c.link == foot])
        arms = (sole - sole.mean(axis=0)) @ rotations[foot].T
        low = arms[:, 2].min()
        for arm in (np.array([1.0, 0.0]), np.array([0.0, 1.0])):
            reach = np.abs(arms[:, :2] @ arm).max()
            moment = np.array([-n[1], n[0]]) @ arm
            give = np.abs(f[:2]).max() * abs(low) + ROOM * weight
            assert abs(moment) < reach * f[2] + give
    assert np.abs(free.wrench - limited.wrench).max() < 1e-6 * weight  # both wanted the same


def test_what_cannot_be_had_is_missed_by_as_little_as_can_be():
    """A large lateral acceleration at low friction: the feet apply the nearest feasible wrench, without NaN."""
    limited, free = plans(Limits(friction=0.02), position=(0.0, 3.0, 1.1), kp=100.0)
    q, _ = crouch(biped())
    wanted, had = in_the_world(free, q)[:, 3:].sum(axis=0), in_the_world(limited, q)[:, 3:].sum(axis=0)
    assert wanted[1] > 5000.0
    assert had[1] == pytest.approx(0.02 / np.sqrt(2.0) * had[2], rel=1e-4)
    assert np.isfinite(limited.tau).all()


def test_joints_keep_to_their_motors():
    robot = biped()
    efforts = {body.v.start: body.motor_limits[0][1] for body in robot.bodies[1:]}
    limited, free = plans(Limits(friction=1.0), position=(0.01, 0.0, 1.6))
    excess = [abs(free.tau[k]) - effort for k, effort in efforts.items()]
    assert max(excess) > 50.0
    assert all(abs(limited.tau[k]) < effort + ROOM * 9.81 * robot.mass for k, effort in efforts.items())
    carried = in_the_world(limited, crouch(robot).q)[:, 5].sum()
    assert 9.81 * robot.mass < carried < in_the_world(free, crouch(robot).q)[:, 5].sum()


def test_a_robot_on_points_has_its_limits_too():
    robot = robots.spatial_quadruped()
    q, v = WorkspaceBalance().initial_state(robot)
    law = WorkspaceBalance(position=(0.3, 0.0, 0.45), limits=Limits(friction=0.4), kp=60.0)
    law, _ = law.start(robot, None, q, v)
    forces = np.array(law.plan(0.0, q, v).forces)  # the trunk is level: base axes are the world's
    assert (np.abs(forces[:, 0]) <= 0.4 / np.sqrt(2.0) * forces[:, 2] + 1e-4).all()
    assert (forces[:, 2] > -1e-4).all()


def test_it_runs_in_python_and_says_so():
    robot = biped()
    q, v = crouch(robot)
    law = WorkspaceBalance(limits=Limits())
    law, _ = law.start(robot, None, q, v)
    with pytest.raises(LeggedError, match="cannot be traced"):
        legged.compile(lambda robot, t, q, v: law.plan(t, q, v).tau, robot)


def test_a_missing_solver_and_a_friction_that_is_none_are_told(monkeypatch):
    with pytest.raises(DefinitionError, match="friction must be above 0"):
        Limits(friction=0.0)
    real = builtins.__import__

    def without_daqp(name, *rest):
        if name == "daqp":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_daqp)
    with pytest.raises(MissingError, match=r"pip install 'legged\[qp\]'"):
        WorkspaceBalance(limits=Limits()).start(biped(), None, *crouch(biped()))
