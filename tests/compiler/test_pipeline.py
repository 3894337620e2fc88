"""The order of the compiler's passes, their only caller, and the names of operations."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import legged.compiler
from legged.compiler import CompilationReport, Kernel, record, run_passes, trace
from legged.compiler.codegen import call_sequence
from legged.compiler.ir.operations import OPERATIONS, Gather, Loop
from legged.compiler.ir.pass_times import PASSES
from legged.compiler.passes.pipeline import Scheduling

COMPILER = Path(legged.compiler.__file__).parent
ROOT = COMPILER.parents[1]
PIPELINE = COMPILER / "passes" / "pipeline.py"
FOLDERS = ("legged", "controllers", "robots", "examples", "benchmarks")
STABLE_HLO = {"negate", "and", "or", "not", "random_uniform"}
"""Operations whose names are those of StableHLO, the instruction set of JAX, or of `jax.random`, not of NumPy."""
JAX = {"copy", "scatter", "scatter_add", "scatter_max", "while_loop", "reduce_max_abs"}
SCIPY = {"solve_banded"}
OWN = {"each", "scatter_entries", "sequence"}
"""Operations of call sequences without a counterpart."""


def passes_of(path: Path) -> dict[str, str]:
    """Return the functions and classes of a file that are compiler passes, and the names of the passes."""
    titles = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for function in (m for m in methods if isinstance(m, ast.FunctionDef)):
            for call in function.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "compiler_pass":
                    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
                    titles[node.name] = ast.literal_eval(call.args[0])
    return titles


def modules_of_passes() -> Iterator[Path]:
    return (path for path in (COMPILER / "passes").rglob("*.py") if path != PIPELINE)


def calls(tree: ast.AST) -> list[str]:
    """Return the names of the functions that are called, in their order in the text."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [ast.unparse(node.func) for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def test_one_function_calls_every_pass_in_the_order_of_the_list():
    passes = {name: title for path in modules_of_passes() for name, title in passes_of(path).items()}
    tree = ast.parse(PIPELINE.read_text(encoding="utf-8"))
    run = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_passes")
    called = [passes[name] for name in calls(run) if name in passes]
    assert sorted(called) == sorted(passes.values())  # each of them, once
    first = PASSES.index(called[0])
    assert tuple(called) == PASSES[first : first + len(called)]


def test_every_module_of_passes_has_a_pass_or_serves_others():
    without = {path.stem for path in modules_of_passes() if not passes_of(path)}
    assert without == {"__init__", "jacobian", "regions"}  # the function for users, and a part of outlining


def test_only_the_pipeline_uses_a_pass():
    passes = {name for path in modules_of_passes() for name in passes_of(path)} - {"MemoryPlan"}
    classes = {"MemoryPlan"}  # a pass whose class other modules name in annotations
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            if path == PIPELINE:
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("legged.compiler.passes"):
                    assert not passes & {name.name for name in node.names}, path
                    assert not (node.module == "legged.compiler.passes" and path.is_relative_to(COMPILER)), path
            if path.is_relative_to(COMPILER):
                assert not (passes | classes) & set(calls(tree)), path


def test_the_list_has_every_pass_and_a_report_prints_it():
    everywhere = {title for path in COMPILER.rglob("*.py") for title in passes_of(path).values()}
    methods = {"loading"}  # of a class
    assert everywhere | methods == set(PASSES) and len(set(PASSES)) == len(PASSES)
    with CompilationReport() as report:
        Kernel(trace(lambda x: x * x + x * 3.0, {"x": ()}))
    assert tuple(row[0] for row in report.table().rows[: len(PASSES)]) == PASSES
    assert all(f"\n{name}" in str(report) for name in PASSES)


def test_requested_passes_run_in_order_and_others_leave_no_result():
    graph = record(lambda k, x: k * x[0] + k * x[1] + 1.0, {"k": (), "x": (2,)})
    result = run_passes(graph, simplified=True, counted=True, fused=True, ordered=True, scheduling=Scheduling(()))
    assert (result.counts.additions, result.counts.multiplications) == (2, 1)  # after factoring, before fusion
    assert [result.graph.nodes[i - 3].operation for i in result.order] == ["add", "fmadd"]
    assert result.sections == [result.order]
    with pytest.raises(AttributeError):
        run_passes(graph).counts  # noqa: B018
    assert run_passes(graph).graph is graph


def test_operations_have_the_names_of_numpy_or_stablehlo():
    assert {name for name in OPERATIONS if not hasattr(np, name)} == STABLE_HLO
    table, body = Gather(np.arange(3.0)), record(lambda state: state - 1.0, {"state": (1,)})
    assert table.startswith("gather_") and Loop(body, 2).startswith("while_")
    lines = [line for line in call_sequence.assembly().splitlines() if line.startswith("define")]
    defined = {line.split("@legged_")[1].split("(")[0].rstrip("0123456789") for line in lines}
    assert defined == JAX | SCIPY | OWN
