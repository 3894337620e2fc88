"""Kernels refuse quaternions of a norm other than 1 as plain functions do, on every path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged.compiler import Kernel, jacobian
from legged.compiler.cache import machine_code
from legged.compiler.codegen import selection
from legged.errors import NotFiniteError, ShapeError

BASE = r"^q\[0:4\], the quaternion of the base, must have norm 1 \(w first\), got "


@pytest.fixture(scope="module")
def robot() -> legged.Robot:
    """Return a robot with a floating base."""
    return robots.spatial_quadruped()


@pytest.fixture(scope="module", params=["straight-line code", "outlined"])
def kernel(request, call_path, robot, tmp_path_factory) -> Kernel:
    """Return compiled forward dynamics."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "outlined":
            patch.setenv("LEGGED_CACHE", str(tmp_path_factory.mktemp("cache")))
            for name in ("OUTLINE_NODES", "OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
                patch.setattr(selection, name, 0)
            machine_code.unload()
        kernel = legged.compile(legged.forward_dynamics, robot)
        kernel(*states(robot, 9))  # loads the code for batches
    machine_code.unload()
    return kernel


def states(robot: legged.Robot, count: int) -> list[np.ndarray]:
    """Return random arguments of the forward dynamics, a row for each state."""
    rng = np.random.default_rng(8)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(count)])
    return [q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))]


def scaled(q: np.ndarray, factor: float) -> np.ndarray:
    """Return configurations with the quaternions of the base multiplied by a number."""
    return np.concatenate([factor * q[..., :4], q[..., 4:]], axis=-1)


@pytest.mark.parametrize("factor", [1.1, 2.0, 0.0, -0.5, 1.0 + 2e-6, 1.0 - 2e-6, 1e200])
def test_one_state_is_refused_in_the_words_of_the_plain_function(kernel, robot, factor):
    q, v, tau = (x[0] for x in states(robot, 1))
    q = scaled(q, factor)
    with pytest.raises(ShapeError, match=BASE) as plain:
        legged.forward_dynamics(robot, q, v, tau)
    for call in (kernel, kernel.general):
        with pytest.raises(ShapeError) as compiled:
            call(q, v, tau)
        assert str(compiled.value) == str(plain.value)
        with pytest.raises(ShapeError, match=BASE):
            call(q, v, tau, out=np.empty(robot.nv))


@pytest.mark.parametrize("factor", [1.0, -1.0, 1.0 + 9e-7, 1.0 - 9e-7])
def test_norms_within_the_tolerance_are_accepted(kernel, robot, factor):
    q, v, tau = (x[0] for x in states(robot, 1))
    q = scaled(q, factor)
    wanted = legged.forward_dynamics(robot, q, v, tau)
    # rounding of a few hundred operations, amplified by the condition of the inertia matrix
    assert np.abs(kernel(q, v, tau) - wanted).max() < 1e-11 * np.abs(wanted).max()


@pytest.mark.parametrize("count", [1, 2, 3, 9, 20_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_name_the_first_state(kernel, robot, count, threads):
    q, v, tau = states(robot, min(count, 50))
    q, v, tau = (np.resize(x, (count, x.shape[1])) for x in (q, v, tau))
    bad = sorted({count // 2, count - 1})
    q[bad, :4] *= 1.5
    words = BASE + rf"1\.5 \(state {bad[0]} of the batch\); divide it by its norm$"
    with pytest.raises(ShapeError, match=words):
        kernel(q, v, tau, threads=threads)
    with pytest.raises(ShapeError, match=words):
        kernel(q, v[0], tau, out=np.empty((count, robot.nv)), threads=threads)


def test_an_argument_that_is_not_finite_is_named_first(kernel, robot):
    q, v, tau = (x[0] for x in states(robot, 1))
    with pytest.raises(NotFiniteError, match=r"q\[0\] is nan"):
        kernel(scaled(q, np.nan), v, tau)


@pytest.mark.usefixtures("call_path")
@pytest.mark.parametrize("seed", range(4))
def test_quaternions_of_ball_joints_are_checked(seed):
    robot = legged.random_tree(seed=seed, links=4, joints=("ball", "free", "revolute"))
    kernel = legged.compile(legged.inverse_dynamics, robot)
    names = [body.name for body in robot.bodies if body.kind == "ball"]
    assert names and len(kernel.graph.unit_quaternions) == len(names) + (robot.base.kind == "floating")
    q = legged.random_configuration(robot, np.random.default_rng(seed))
    zero = np.zeros(robot.nv)
    kernel(q, zero, zero)
    for body in robot.bodies:
        if body.kind == "ball":
            wrong = q.copy()
            wrong[body.q] *= 1.01
            with pytest.raises(ShapeError, match="must have norm 1") as plain:
                legged.inverse_dynamics(robot, wrong, zero, zero)
            with pytest.raises(ShapeError, match=f"the quaternion of {body.name}, must have norm 1") as compiled:
                kernel(wrong, zero, zero)
            assert str(compiled.value) == str(plain.value)


def test_checks_are_part_of_the_digest_but_no_operations(robot):
    kernel = legged.compile(legged.inertia_matrix, robot)
    unchecked = replace(
        legged.compile(lambda robot, q: legged.inertia_matrix(robot, q), robot).graph, unit_quaternions=()
    )
    assert kernel.graph.digest != unchecked.digest
    assert kernel.counts == Kernel(unchecked).counts == legged.count(legged.inertia_matrix, robot)
    q = robot.neutral()
    assert np.array_equal(kernel(q), Kernel(unchecked)(q))
    assert np.isfinite(Kernel(unchecked)(scaled(q, 2.0))).all()


def test_quaternions_that_a_function_computes_are_not_checked(robot):
    def energy(robot, q):
        return legged.potential_energy(robot, np.concatenate([q[:4] / np.linalg.norm(q[:4]), q[4:]]))

    kernel = legged.compile(energy, robot)
    q = states(robot, 1)[0][0]
    assert kernel(scaled(q, 3.0)) == pytest.approx(legged.potential_energy(robot, q), rel=1e-12)


def test_jacobians_are_checked(robot):
    derivative = jacobian(legged.potential_energy, "q")
    q = robot.neutral()
    kernel = legged.compile(derivative, robot)
    assert kernel(q) == pytest.approx(derivative(robot, q), rel=1e-12)
    for call in (kernel, lambda q: derivative(robot, q), lambda q: kernel.graph.evaluate(q)):
        with pytest.raises(ShapeError, match=BASE):
            call(scaled(q, 1.1))


def test_functions_of_other_bases_have_no_checks():
    robot = robots.planar_biped()
    assert legged.compile(legged.forward_dynamics, robot).graph.unit_quaternions == ()


@pytest.mark.parametrize("batched", [False, True])
def test_rollouts_refuse_their_initial_state(robot, batched):
    q = scaled(robot.neutral(), 1.1)
    with pytest.raises(ShapeError, match=BASE):
        legged.rollout(robot, until=0.01, q=np.tile(q, (3, 1)) if batched else q, ground=None)
