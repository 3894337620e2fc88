"""Coordinates of one joint in two programs: conversion and back, equal power, accelerations as rates of velocities."""

import numpy as np
import pytest

from legged.conversions.charts import (
    DRAKE,
    MUJOCO,
    OUR_BASE,
    OUR_JOINT,
    PINOCCHIO,
    BallChart,
    Chart,
    CircleChart,
    FreeChart,
    PlanarChart,
)
from legged.rotations import quaternion_exp, quaternion_matrix, quaternion_product

TURN = quaternion_matrix(quaternion_exp(np.array([0.3, -1.2, 0.8])))

CHARTS = {
    "the same": Chart(),
    "ball": BallChart(),
    "circle": CircleChart(),
    "turning plane": PlanarChart(),
    "base to Pinocchio": FreeChart(OUR_BASE, PINOCCHIO),
    "base to MuJoCo": FreeChart(OUR_BASE, MUJOCO),
    "base to Drake": FreeChart(OUR_BASE, DRAKE),
    "free joint to Pinocchio": FreeChart(OUR_JOINT, PINOCCHIO),
    "free joint to MuJoCo": FreeChart(OUR_JOINT, MUJOCO),
    "free joint to Drake": FreeChart(OUR_JOINT, DRAKE),
    "turned base to Pinocchio": FreeChart(OUR_BASE, PINOCCHIO, TURN),
    "turned base to MuJoCo": FreeChart(OUR_BASE, MUJOCO, TURN),
    "turned base to Drake": FreeChart(OUR_BASE, DRAKE, TURN),
    "turned free joint to Pinocchio": FreeChart(OUR_JOINT, PINOCCHIO, TURN),
}


def close(actual, expected, tolerance):
    return np.abs(actual - expected).max() <= tolerance * max(np.abs(expected).max(), 1.0)


@pytest.mark.parametrize("name", CHARTS)
def test_charts_go_there_and_back(name):
    chart, rng = CHARTS[name], np.random.default_rng(0)
    q, v = state_of(chart, rng)
    vdot, tau = rng.normal(size=(2, *v.shape))
    there = chart.to_configuration(q)
    assert close(chart.from_configuration(there), q, 1e-14)
    assert close(chart.from_velocity(q, chart.to_velocity(q, v)), v, 1e-14)
    assert close(chart.from_acceleration(q, v, chart.to_acceleration(q, v, vdot)), vdot, 1e-13)
    assert close(chart.from_force(q, chart.to_force(q, tau)), tau, 1e-14)
    power = (tau * v).sum(-1)
    assert close((chart.to_force(q, tau) * chart.to_velocity(q, v)).sum(-1), power, 1e-13)


@pytest.mark.parametrize("name", CHARTS)
def test_their_acceleration_is_the_rate_of_their_velocity(name):
    """Along q(t) with constant vdot, to the error of a central difference with a step of 1e-5."""
    chart, rng, h = CHARTS[name], np.random.default_rng(1), 1e-5
    q, v = (x[0] for x in state_of(chart, rng))
    vdot = rng.normal(size=v.shape)
    ahead, behind = (chart.to_velocity(moved(chart, q, v, vdot, t), v + t * vdot) for t in (h, -h))
    assert close(chart.to_acceleration(q, v, vdot), (ahead - behind) / (2 * h), 1e-8)


def state_of(chart, rng):
    """Return random q and v of a chart, ours, with a leading axis of 4."""
    if isinstance(chart, FreeChart):
        q = rng.normal(size=(4, 7))
        turn = q[:, :4] if chart.own == OUR_BASE else q[:, 3:]
        turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        return q, rng.normal(size=(4, 6))
    if isinstance(chart, BallChart):
        q = rng.normal(size=(4, 4))
        return q / np.linalg.norm(q, axis=-1, keepdims=True), rng.normal(size=(4, 3))
    n = 3 if isinstance(chart, PlanarChart) else 1
    return rng.uniform(-3, 3, (4, n)), rng.normal(size=(4, n))


def moved(chart, q, v, vdot, t):
    """Return q after a time t, ours, to t^2."""
    step = t * v + 0.5 * t * t * vdot
    if isinstance(chart, BallChart):
        return quaternion_product(q, quaternion_exp(step))
    if not isinstance(chart, FreeChart):
        return q + step
    if chart.own == OUR_JOINT:
        return np.concatenate([q[:3] + step[:3], quaternion_product(q[3:], quaternion_exp(step[3:]))])
    turned = quaternion_product(q[:4], quaternion_exp(step[:3]))
    middle = quaternion_matrix(quaternion_product(q[:4], quaternion_exp(0.5 * step[:3])))
    return np.concatenate([turned, q[4:] + middle @ step[3:]])
