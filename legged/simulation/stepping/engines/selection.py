"""Selection of the step engine: machine code where the time step can be traced, else Python."""

from __future__ import annotations

from legged.compiler import FLOAT32, FLOAT64, Members
from legged.compiler.ir import gc_paused
from legged.errors import TraceError
from legged.simulation.backend import has_parts, warn_of_python
from legged.simulation.integrators import FixedStep, Integrator
from legged.simulation.stepping.batch import InitialStates
from legged.simulation.stepping.compiled_batch import NO_INPUT, CompiledBatch, MemberTemplate, StepInput
from legged.simulation.stepping.engines.compiled import CompiledEngine, StepEngine
from legged.simulation.stepping.engines.solvers import PythonEngine

FEW_ROBOTS = 16
"""Number of members up to which a scene with many contacts runs in parts, one member after the other."""
_AGREEMENT = {FLOAT64: 1e-6, FLOAT32: 1e-2}
"""Relative difference of rates in compiled and plain steps of 0.1 ms, which differ by rounding of the states after a
step, or by a hidden state of the controller."""


@gc_paused()
def new_engine(
    template: MemberTemplate,
    starts: InitialStates,
    members: Members,
    integrator: Integrator,
    compiled: bool | None,
    given: StepInput = NO_INPUT,
) -> StepEngine:
    """Return the fastest possible engine.

    Up to `FEW_ROBOTS` scenes with many contacts run in parts, since one kernel for their time step takes minutes to
    compile.

    Args:
        template: The robots as functions of their numbers. starts: The robots at the start.
        members: States and outcomes, which the engine changes in place. integrator: The integrator.
        compiled: As in `simulate`. given: What each step is given.

    Raises:
        TraceError: If compiled is True, or the numbers are not doubles, and the time step cannot be compiled.
    """
    reason, element, loops = "as asked", template.batch.element, set(starts.loops)
    if starts.refused:
        reason = reason if compiled is False else starts.refused
    elif not isinstance(integrator, FixedStep):
        reason = "variable steps"
        if compiled:
            raise TraceError(f"{integrator} runs in Python; use fixed steps, or leave out compiled=True")
    elif compiled is None and element == FLOAT64 and len(starts.loops) <= FEW_ROBOTS and all(map(has_parts, loops)):
        reason = "parts of a scene with many contacts"
    elif compiled is not False:
        try:
            compiled_batch = CompiledBatch(template.batch, starts, integrator.rule, given, template)
            difference = compiled_batch.largest_difference()
            if difference < _AGREEMENT[element]:
                code, parameters = compiled_batch.code, compiled_batch.parameters
                return CompiledEngine(
                    code, parameters, template.batch.robot, members, integrator, given, compiled_batch
                )
            reason = f"compiled and in Python it differs by {difference:.1e}; does the controller keep a state?"
        except Exception as error:  # tracing runs the user's code, which may raise anything
            reason = f"{type(error).__name__}: {error}"
        if compiled:
            raise TraceError(f"the time step cannot be compiled: {reason}")
        if element == FLOAT64:
            warn_of_python(template.batch.first.loop, reason)
    if element != FLOAT64:
        raise TraceError(f"{element} needs compiled time steps: {reason}; use dtype='float64'")
    return PythonEngine(template.batch, starts, members, integrator, given, reason)
