"""Large graphs in several functions: the same numbers as in one."""

import numpy as np
import pytest

import legged
import robots
from legged.trace import chunks, where


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path):
    """Cut already what would be compiled in one piece."""
    monkeypatch.setattr(chunks, "LARGE", 50)
    monkeypatch.setattr(chunks, "PART", 40)
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_pieces_give_the_plain_numbers_for_one_state_and_for_many(name):
    robot = robots.chain(5, twist=0.7)
    rng = np.random.default_rng(0)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=(11, robot.nv))
    force = rng.normal(size=robot.nv)
    function = getattr(legged, name)
    kernel = legged.compile(function, robot)
    plain = np.array([function(robot, q, rates, force) for rates in v])
    scale = np.abs(plain).max()
    assert np.abs(kernel(q, v[0], force) - plain[0]).max() <= 1e-12 * scale
    assert np.abs(kernel(q, v, force) - plain).max() <= 1e-12 * scale


def test_conditions_reach_across_pieces():
    """Memory between the pieces holds numbers; a condition is computed again where it is needed."""

    def law(x):
        positive = (x[0] > 0.0) & ~(x[1] > 2.0)
        total = x[0]
        for k in range(100):
            total = total * 0.9 + x[k % 3]
        return where(positive, total, -total) + np.sin(total)

    kernel = legged.compile(law, x=(3,))
    rows = np.random.default_rng(1).normal(size=(20, 3)) * 2
    assert kernel(rows) == pytest.approx([law(row) for row in rows], rel=1e-13)
    assert [kernel(row) for row in rows] == pytest.approx([law(row) for row in rows], rel=1e-13)
