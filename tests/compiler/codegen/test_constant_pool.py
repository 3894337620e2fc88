"""Splat constants of vector code in pools: the same results to the last bit, for all lengths and types."""

import re

import numpy as np
import pytest

import legged
from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.constant_pool import POOL_SIZE, pool_constants
from legged.compiler.codegen.element_type import ELEMENT_TYPES, FLOAT64
from tests.compiler.codegen.test_targets import available, states

AVX512 = llvm.TARGETS["avx512"][0]
needs_avx512 = pytest.mark.skipif(not available("avx512"), reason="needs a processor with AVX-512")


@needs_avx512
@pytest.mark.parametrize("element", ELEMENT_TYPES)
@pytest.mark.parametrize("seed", range(3))
def test_pools_change_no_bit(monkeypatch, tmp_path, seed, element):
    robot = legged.random_tree(seed=seed, links=6)
    arguments = states(robot, 21, seed)
    found = []
    for folder in ("with", "without"):
        monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / folder))
        for function in (legged.forward_dynamics, legged.inverse_dynamics):
            kernel = legged.compile(function, robot, target="avx512", dtype=element)
            found.append(kernel(*arguments))
        machine_code.unload()
        monkeypatch.setattr(selection, "pool_constants", lambda ir, target: ir)
    for pooled, plain in zip(found[:2], found[2:], strict=True):
        assert np.array_equal(pooled, plain)


def test_constants_are_loaded_once_per_pool_right_before_their_use():
    numbers = [f"0x{0x3FF0000000000000 + k:016X}" for k in range(POOL_SIZE + 1)]
    uses = [f"  %v{k} = fmul contract <8 x double> %x, splat (double {x})" for k, x in enumerate(numbers)]
    uses.append(uses[-1].replace(f"%v{POOL_SIZE}", "%again"))
    zero = "  %z = fadd <8 x double> %x, splat (double 0x0000000000000000)"
    other = "  %d = fdiv <8 x double> splat (double 0x3FF0000000000000), %x"
    body = [*uses, zero, other, "next:", uses[0].replace("%v0", "%w")]
    ir = "\n".join(["define void @f(<8 x double> %x) {", *body, "}"])
    pooled = pool_constants(ir, AVX512)
    sizes = [int(n) for n in re.findall(r"^@pool\d+ = internal constant \[(\d+) x double\]", pooled, re.MULTILINE)]
    assert sizes == [POOL_SIZE, 1, 1]  # the last one in a basic block of its own
    assert pooled.count(" = load double") == len(numbers) + 2
    assert zero in pooled and other in pooled
    for target in (llvm.TARGETS["avx2"][0], llvm.TARGETS["neon"][0].with_element(FLOAT64)):
        assert pool_constants(ir, target) is ir
