"""Random numbers as functions of a counter: the published generator, and the same numbers plain, compiled and in C."""

import ctypes
import subprocess

import numpy as np
import pytest
from scipy import stats

import legged
from legged.compiler.ir import random_uniform
from legged.compiler.ir.philox import philox
from legged.errors import ArgumentError

COUNTERS = np.random.default_rng(0).integers(0, 2**24, size=(4, 1000)).astype(float)


def draws(seed, stream, step, draw):
    return random_uniform(seed, stream, step, draw)


@pytest.mark.parametrize(
    "counter, key, words",  # known answers that the authors publish with the generator
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_words_are_those_of_the_published_generator(counter, key, words):
    assert tuple(int(word) for word in philox(key, counter)) == words


def test_compiled_numbers_are_the_plain_ones_bit_for_bit():
    plain = random_uniform(*COUNTERS)
    kernel = legged.compile(draws, seed=(), stream=(), step=(), draw=())
    np.testing.assert_array_equal(kernel(*COUNTERS), plain)
    assert [kernel(*row) for row in COUNTERS.T[:20]] == plain[:20].tolist()
    single = legged.compile(draws, seed=(), stream=(), step=(), draw=(), dtype="float32")
    np.testing.assert_array_equal(single(*COUNTERS.astype(np.float32)), np.floor(plain * 2**24) / 2**24)
    assert kernel.counts.other == 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_numbers_of_a_kernel_are_those_of_single_ones(dtype):
    """Many numbers call a function, whose code is otherwise inlined; the condition uses one number as a key."""

    def many(seed, stream):
        drawn = [random_uniform(seed, stream, 5.0, float(k)) for k in range(20)]
        return np.stack([*drawn, random_uniform(seed, np.floor(100.0 * drawn[3]), 1.0, 0.0)])

    seed, stream = COUNTERS[:2, :37]
    numbers = legged.compile(many, seed=(), stream=(), dtype=dtype)(seed, stream)
    scale = 2.0**53 if dtype == "float64" else 2.0**24
    for k in range(20):
        expected = np.floor(random_uniform(seed, stream, 5.0, float(k)) * scale) / scale
        np.testing.assert_array_equal(numbers[:, k], expected)
    assert [
        legged.compile(many, seed=(), stream=(), dtype=dtype)(*x).tolist()
        for x in zip(seed[:3], stream[:3], strict=True)
    ] == (numbers[:3].tolist())


@pytest.mark.parametrize("precision", ["double", "float"])
def test_c_has_the_same_numbers(tmp_path, precision):
    dtype = {"double": np.float64, "float": np.float32}[precision]
    kernel = legged.compile(draws, seed=(), stream=(), step=(), draw=(), dtype=dtype)
    source = kernel.to_c(tmp_path / "draws", precision).source
    library = tmp_path / "draws.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-std=c99", "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).draws
    for row in COUNTERS.T[:50].astype(dtype):
        result = np.empty(1, dtype)
        arrays = [np.array([x]) for x in row] + [result]
        assert not function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        assert result[0] == kernel(*row)


def test_numbers_are_uniform_and_independent_along_each_counter():
    """The 1 % bounds of Kolmogorov and Smirnov, and of the correlation of neighbors, for 100 000 fixed numbers."""
    n = 100_000
    for k in range(4):
        arguments = [3.0, 5.0, 7.0, 11.0]
        arguments[k] = np.arange(n, dtype=float)
        u = random_uniform(*arguments)
        assert stats.kstest(u, "uniform").pvalue > 0.01
        assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 2.6 / np.sqrt(n)
        assert len(np.unique(u)) == n


def test_the_derivative_is_zero_and_wrong_counters_are_refused():
    assert legged.jacobian(lambda x: x + random_uniform(1.0, 2.0, 3.0, x), "x")(np.float64(4.0)) == 1.0
    for wrong in (-1.0, 2.0**24, np.nan):
        with pytest.raises(ArgumentError, match="step"):
            random_uniform(0.0, 0.0, wrong, 0.0)
