"""State that a controller keeps besides its memory, such as a filter's attributes: copies, and leaks of expressions."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from legged.compiler import Expression, Kernel
from legged.contact.rigid import Rigid
from legged.errors import TraceError
from legged.ground.ground import Ground
from legged.robot.robot import Robot


def independent_copy(controller: Any) -> Any:
    """Return a copy of a controller whose own state, such as a filter's attributes, is separate from the original's.

    Robots, grounds, terrains and compiled kernels are shared. Functions and the variables that they have captured are
    not copied. A controller that cannot be copied is returned itself.

    Args:
        controller: Any controller.
    """
    kinds = (Robot, Kernel, Ground, Rigid)
    shared = {id(part): part for part in parts_of(controller) if isinstance(part, kinds) or _is_terrain(part)}
    try:
        return copy.deepcopy(controller, shared)
    except Exception:  # a user's class may refuse to be copied in any way
        return controller


def _is_terrain(part: Any) -> bool:
    """Return whether an object has the interface of `legged.ground.Terrain`."""
    return not isinstance(part, type) and all(callable(getattr(part, name, None)) for name in ("height", "normal"))


def check_stateless(controller: Any) -> None:
    """Raise TraceError if a controller that has been traced has stored expressions of the trace in its own state.

    Args:
        controller: Any controller.
    """
    if any(isinstance(part, Expression) for part in parts_of(controller)):
        raise TraceError("the controller changes a state of its own, not only its memory")


def parts_of(controller: Any) -> Iterator[Any]:
    """Yield all objects in a controller: attributes, entries, and variables that functions have captured.

    Args:
        controller: Any controller.
    """
    visited: dict[int, Any] = {}
    pending = [controller]
    while pending:
        part = pending.pop()
        if id(part) in visited:
            continue
        visited[id(part)] = part
        yield part
        if isinstance(part, (list, tuple)):
            pending.extend(part)
        elif isinstance(part, np.ndarray) and part.dtype == object:
            pending.extend(part.ravel().tolist())
        elif isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, FunctionType):
            pending.extend(cell.cell_contents for cell in part.__closure__ or () if _is_filled(cell))
        elif isinstance(part, MethodType):
            pending.append(part.__self__)
        elif not isinstance(part, (type, ModuleType, Robot, Kernel, Expression)):
            pending.extend(getattr(part, "__dict__", {}).values())


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # the variable has no value yet
        return False
    return True
