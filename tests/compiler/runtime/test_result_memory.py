"""Memory of large results: reused when nothing refers to it, and never shared by two results in use."""

import gc
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import legged
from legged.compiler import mechanisms
from legged.compiler.runtime import result_memory
from legged.compiler.runtime.result_memory import LARGE_RESULT, MOST_IDLE

COUNT = LARGE_RESULT // 64 + 1  # states whose results of eight numbers are large


@pytest.fixture(params=["entry point", "ctypes"])
def kernel(request):
    result_memory._idle.clear()
    if request.param == "ctypes":
        with mechanisms.without(mechanisms.ENTRY_POINT):
            yield legged.compile(eight, None, x=())
    else:
        yield legged.compile(eight, None, x=())
    result_memory._idle.clear()


def eight(x):
    return np.stack([x + k for k in range(8)])


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_of_a_deleted_result_is_used_again(kernel):
    first = kernel(np.zeros(COUNT + 5))
    place, view = address(first), first[1:, 2].reshape(-1, 1)
    del first
    second = kernel(np.ones(COUNT))
    assert address(second) != place  # the view still uses it
    assert (view == 2.0).all()
    del view
    third = kernel(np.ones(COUNT))
    assert address(third) == place  # another size that fits
    del third
    assert address(kernel(np.ones(3 * COUNT))) != place


def test_results_in_use_share_no_memory(kernel):
    rng, held = np.random.default_rng(0), []
    for k in range(40):
        count = int(rng.integers(COUNT, 3 * COUNT))
        result = kernel(np.full(count, float(k)))
        held.append((k, result if rng.random() < 0.5 else result[count // 3 :, 1:]))
        del result
        if len(held) > 5:
            del held[rng.integers(len(held))]
        places = sorted((address(a), address(a) + a.nbytes) for _, a in held)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(places))
    for k, a in held:
        assert (a == k + np.arange(8.0)[-a.shape[1] :]).all()


def test_threads_get_results_of_their_own(kernel):
    def work(seed):
        rng = np.random.default_rng(seed)
        for k in range(20):
            result = kernel(np.full(int(rng.integers(COUNT, 2 * COUNT)), 10.0 * k + seed), threads=1)
            assert (result == 10.0 * k + seed + np.arange(8)).all()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_kept_memory_is_bounded(monkeypatch, kernel):
    monkeypatch.setattr(result_memory, "MOST_IDLE", 4 * LARGE_RESULT)
    held = [kernel(np.zeros(COUNT)) for _ in range(6)]
    last = address(held[-1])
    while held:
        del held[0]
    gc.collect()
    kept = result_memory._idle
    assert sum(memory.nbytes for memory in kept.values()) <= result_memory.MOST_IDLE < MOST_IDLE
    assert last in kept and len(kept) == 3  # those that were deleted last


def test_small_results_own_their_memory(kernel):
    assert kernel(np.zeros(100)).flags.owndata
    assert not result_memory._idle
