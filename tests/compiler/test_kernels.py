"""Kernels: calls, batches, errors, and the shapes of arguments in `compile`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from types import SimpleNamespace

import numpy as np
import pytest

from legged.compiler import Kernel, compile, count, module, record, stage
from legged.compiler.codegen import selection
from legged.compiler.ir import where
from legged.errors import NotFiniteError, ShapeError, SingularError, TraceError, UnknownNameError

ROBOT = SimpleNamespace(nq=19, nv=18, base=SimpleNamespace(nv=6), links=tuple(range(13)))


def spring(robot, q, v, tau, stiffness=2.0):
    """A law that uses a robot."""
    return tau - stiffness * np.sin(q[: robot.nv]) * v


@pytest.fixture(scope="module")
def kernel(call_path) -> Kernel:
    """The law, compiled."""
    return compile(spring, ROBOT)


@pytest.fixture
def state(rng) -> tuple[np.ndarray, ...]:
    """q, v and tau."""
    return rng.normal(size=19), rng.normal(size=18), rng.normal(size=18)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same every time."""
    return np.random.default_rng(7)


@pytest.fixture
def many_switches():
    """Let threads take turns at nearly every instruction of Python."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # [s]
    yield
    sys.setswitchinterval(before)


# Calls


def test_a_kernel_computes_what_the_function_computes(kernel, state):
    assert kernel(*state) == pytest.approx(spring(ROBOT, *state), rel=1e-14)


def test_arguments_may_be_lists_integers_or_strided_and_named(kernel, state):
    q, v, tau = state
    wanted = spring(ROBOT, *state)
    assert kernel(list(q), tuple(v), tau) == pytest.approx(wanted, rel=1e-14)
    assert kernel(np.repeat(q, 2)[::2], v[::-1].copy()[::-1], tau) == pytest.approx(wanted, rel=1e-14)
    assert kernel(q, tau=tau, v=v) == pytest.approx(wanted, rel=1e-14)
    ones = np.ones(18, dtype=np.int32)
    assert kernel(q, ones, ones.astype(np.uint8)) == pytest.approx(spring(ROBOT, q, ones, ones), rel=1e-14)
    assert kernel(q.astype(np.float32), v, tau) == pytest.approx(wanted, rel=1e-6)  # single precision of q


def test_results_are_the_callers_own(kernel, state):
    first = kernel(*state)
    kept = first.copy()
    kernel(*[2.0 * x for x in state])
    assert np.array_equal(first, kept)


def test_out_takes_the_results(kernel, state):
    out = np.empty(18)
    assert kernel(*state, out=out) is out
    assert np.array_equal(out, kernel(*state))
    rows = np.empty((4, 18))
    kernel(*[np.tile(x, (4, 1)) for x in state], out=rows)
    assert np.array_equal(rows, np.tile(out, (4, 1)))
    with pytest.raises(ShapeError, match=r"out must be an array of shape \(18,\), got \(12,\)"):
        kernel(*state, out=np.empty(12))


def test_results_have_the_structure_of_the_functions():
    both = compile(lambda x, t: (x / t, {"root": np.sqrt(t)}, 7), x=(2, 2), t=())
    x = np.arange(4.0).reshape(2, 2)
    quotient, named, seven = both(x, 4.0)
    assert np.array_equal(quotient, x / 4.0) and named["root"] == 2.0 and seven == 7.0
    quotient, named, seven = both(np.stack([x, x, x]), [1.0, 4.0, 9.0])
    assert quotient.shape == (3, 2, 2) and named["root"] == pytest.approx([1.0, 2.0, 3.0]) and np.shape(seven) == (3,)


def test_functions_of_nothing_and_constants():
    assert compile(lambda: np.eye(2))() == pytest.approx(np.eye(2))
    assert compile(lambda x: np.zeros((0, 3)), x=3)(np.ones(3)).shape == (0, 3)


def test_a_kernel_knows_its_graph_counts_and_arguments(kernel):
    assert kernel.counts.multiplications == 36 and kernel.counts.trigonometric == 18
    assert [a.name for a in kernel.arguments] == ["q", "v", "tau"] and kernel.arguments[0].shape == (19,)
    assert kernel.graph.output_size == 18
    assert repr(kernel) == "<Kernel spring(q: (19,), v: (18,), tau: (18,))>"


@pytest.mark.parametrize("lead", [(), (3,), (3000,)], ids=["one state", "few states", "many states, without the GIL"])
def test_threads_may_share_a_kernel(kernel, lead, many_switches):
    """Threads begin each round together, with own arguments; memory that calls shared would mix their results."""
    states = [tuple(np.random.default_rng(k).normal(size=(*lead, n)) for n in (19, 18, 18)) for k in range(4)]
    alone = [kernel(*state) for state in states]
    barrier, rounds = Barrier(len(states), timeout=60.0), 20 if lead == (3000,) else 300

    def differing(k):
        count = 0
        for _ in range(rounds):
            barrier.wait()
            count += not np.array_equal(kernel(*states[k]), alone[k])
        return count

    with ThreadPoolExecutor(len(states)) as pool:
        assert list(pool.map(differing, range(len(states)))) == [0, 0, 0, 0]


# Leading axes


@pytest.mark.parametrize("leads", [((), (5,), ()), ((2, 3), (3,), (1, 1)), ((4,), (4,), (4,)), ((0,), (1,), ())])
def test_leading_axes_broadcast_as_numpys(kernel, rng, leads):
    arrays = [rng.normal(size=(*lead, n)) for lead, n in zip(leads, (19, 18, 18), strict=True)]
    result = kernel(*arrays)
    assert result.shape == (*np.broadcast_shapes(*leads), 18)
    wanted = arrays[2] - 2.0 * np.sin(arrays[0][..., :18]) * arrays[1]
    assert result == pytest.approx(wanted, rel=1e-14)


def test_a_state_does_not_depend_on_its_batch(kernel, rng):
    arrays = [rng.normal(size=(7, n)) for n in (19, 18, 18)]
    for row, alone in zip(kernel(*arrays), zip(*arrays, strict=True), strict=True):
        assert np.array_equal(row, kernel(*alone))


# Errors


def test_wrong_shapes_are_told_in_words(kernel, state):
    q, v, tau = state
    with pytest.raises(ShapeError, match=r"v must be \(18,\), one entry per degree of freedom, got shape \(12,\)"):
        kernel(q, v[:12], tau)
    with pytest.raises(ShapeError, match=r"q must be \(19,\), one entry per position coordinate, got shape \(\)"):
        kernel(1.0, v, tau)
    with pytest.raises(ShapeError, match=r"takes 3 arguments \(q, v, tau\), got 2"):
        kernel(q, v)
    with pytest.raises(ShapeError, match=r"missing: \['tau'\], not known or twice: \['torque'\]"):
        kernel(q, v, torque=tau)
    with pytest.raises(ShapeError, match=r"do not broadcast: q \(2,\), v \(3,\), tau \(\)"):
        kernel(np.tile(q, (2, 1)), np.tile(v, (3, 1)), tau)


def test_nan_in_is_named(kernel, state):
    q, v, tau = state
    v = v.copy()
    v[3] = np.nan
    with pytest.raises(NotFiniteError, match=r"v\[3\] is nan; spring needs numbers"):
        kernel(q, v, tau)
    rows = np.tile(v, (2, 3, 1))
    rows[:, :, 3] = 0.0
    rows[1, 2, 5] = np.inf
    with pytest.raises(NotFiniteError, match=r"v\[5\] is inf \(state 1, 2 of the batch\)"):
        kernel(q, rows, tau)


def test_a_division_by_zero_names_stage_and_module():
    def solve(x):
        with stage("2 articulated inertias"), module(3):
            return 1.0 / (x[0] - x[1])

    with pytest.raises(SingularError, match="divides by zero in stage '2 articulated inertias' of module 3"):
        compile(solve, x=2)([1.0, 1.0])


def test_leaving_a_functions_domain_is_told():
    root = compile(lambda x: np.sqrt(x) + np.log(x), x=(3,))
    with pytest.raises(NotFiniteError, match=r"has no finite answer: sqrt\(-2\) \(state 1 of the batch\)"):
        root([[1.0, 2.0, 3.0], [1.0, -2.0, 3.0]])
    with pytest.raises(NotFiniteError, match=r"log\(0\)"):
        root([1.0, 0.0, 3.0])


def test_what_a_selection_rejects_may_be_infinite():
    guarded = compile(lambda x: where(x > 0.0, 1.0 / x, 0.0), x=())
    assert guarded(0.0) == 0.0 and guarded(2.0) == 0.5


# Shapes from the signature


def test_shapes_follow_from_names():
    def law(robot, t, q, qd, joint_torques, wrenches, gain, offset=0.0):
        return t + np.sum(q) + np.sum(qd) + np.sum(joint_torques) + np.sum(wrenches) + gain @ gain + offset

    kernel = compile(law, ROBOT, gain=2)
    shapes = [a.shape for a in kernel.arguments]
    assert shapes == [(), (19,), (18,), (12,), (13, 6), (2,)]
    assert [a.name for a in compile(law, ROBOT, gain=2, offset=()).arguments][-1] == "offset"
    assert kernel(1.0, *[np.zeros(s) for s in shapes[1:-1]], [3.0, 4.0]) == 26.0


def test_arguments_with_defaults_keep_them_unless_asked():
    def law(robot, v, wrenches=None, *, scale=2.0):
        return scale * v if wrenches is None else scale * v + wrenches[0, 0]

    assert [a.name for a in compile(law, ROBOT).arguments] == ["v"]
    for given in (True, (13, 6)):
        kernel = compile(law, ROBOT, wrenches=given, scale=())
        assert [a.shape for a in kernel.arguments] == [(18,), (13, 6), ()]
        assert kernel(np.ones(18), np.ones((13, 6)), 3.0) == pytest.approx(4.0 * np.ones(18))


def test_objects_partials_and_methods_can_be_compiled():
    class Law:
        def __init__(self, gain: float):
            self.gain = gain

        def __call__(self, robot, v):
            return self.gain * v

        def torque(self, robot, v):
            return self(robot, v)

    for law in (Law(2.0), Law(2.0).torque, partial(lambda gain, robot, v: gain * v, 2.0)):
        assert compile(law, ROBOT)(np.ones(18)) == pytest.approx(2.0 * np.ones(18))


def test_a_missing_shape_says_how_to_give_it():
    with pytest.raises(TraceError, match=r"argument 'gain' does not follow .* gain=\(3,\)"):
        compile(lambda robot, q, gain: q, ROBOT)
    with pytest.raises(TraceError, match=r"argument 'q' does not follow"):
        count(lambda q: q)
    with pytest.raises(TraceError, match="the shape of x must be"):
        count(lambda x: x, x="three")


def test_a_shape_for_no_argument_is_refused():
    with pytest.raises(UnknownNameError, match="no argument of spring named 'stifness'; did you mean 'stiffness'"):
        compile(spring, ROBOT, stifness=())


# Size


def test_big_graphs_compile():
    """Their code has several basic blocks."""

    def walk(x):
        rng = np.random.default_rng(0)
        values = list(x)
        for _ in range(15_000):
            a, b = (values[-1 - i] for i in rng.integers(8, size=2))
            values.append(0.5 * a + 0.3 * b * x[rng.integers(8)])
        return np.stack(values[-8:])

    graph = record(walk, {"x": (8,)})
    assert len(graph.nodes) > 20_000
    x = np.linspace(0.5, 1.0, 8)
    assert "\nblock1:\n" in selection.single_state_module(graph)
    # errors of old values die out with the values, by a factor below one a step
    assert Kernel(graph)(x) == pytest.approx(walk(x), rel=1e-12)
