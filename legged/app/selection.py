"""Select robots by the text of a command-line argument.

The text is a robot of `robots` (`planar_biped`, `chain(12)`), a function in a file (`my_robot.py:biped(legs=2)`), or a
URDF or MJCF file (`go2.urdf`, `scene.xml`).
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import robots
from legged.errors import DefinitionError, UnknownNameError
from legged.files.load import load
from legged.loops import ClosedRobot
from legged.loops import load as load_closed
from legged.robot.base import Base, FixedBase, FloatingBase, PlanarBase
from legged.robot.robot import Robot

FILES = (".urdf", ".xml", ".mjcf")
BASES: dict[str, type[Base]] = {"floating": FloatingBase, "fixed": FixedBase, "planar": PlanarBase}


def select_robot(text: str, base: str | None = None) -> Robot:
    """Return the robot without closed loops that a text names.

    Args and Raises as in `select_any_robot`; DefinitionError also for a robot with closed loops.
    """
    if text.lower().endswith(FILES):
        return load(text, base)
    made = select_any_robot(text, base)
    if isinstance(made, ClosedRobot):
        raise DefinitionError(
            f"{text!r} has closed loops, which this command does not support; use `legged info`, `legged count` "
            f"or `legged.loops` in Python"
        )
    return made


def select_any_robot(text: str, base: str | None = None) -> Robot | ClosedRobot:
    """Return the robot that a text names, including its closed loops.

    Args:
        text: A robot of `robots`, `file.py:function`, or a URDF or MJCF file; arguments are Python literals.
        base: Key of `BASES` that replaces the base of the robot, for a function with an argument `base`.

    Raises:
        UnknownNameError: an unknown robot, function or base.
        DefinitionError: an invalid text, file or argument.
        FileError: a URDF or MJCF file that `legged.load` rejects.
    """
    if text.lower().endswith(FILES):
        closed = load_closed(text, base)
        return closed if closed.loops else closed.robot
    where, _, call = text.rpartition(":")
    name, positional, keywords = _parsed(call)
    make = _function(where, name)
    if base is not None:
        if base not in BASES:
            raise UnknownNameError("base", base, BASES)
        keywords["base"] = BASES[base]()
    try:
        inspect.signature(make).bind(*positional, **keywords)
    except TypeError as error:
        usage = f"{name}{inspect.signature(make)}"
        raise DefinitionError(f"robot {text!r} cannot be created: {error}; its signature is {usage}") from error
    made = make(*positional, **keywords)
    if not isinstance(made, (Robot, ClosedRobot)):
        raise DefinitionError(f"{text!r} returns {type(made).__name__}, not a Robot; build it with RobotBuilder")
    return made


def ready_made_robots() -> list[str]:
    """Return the names of all robots of `robots` without required arguments and without closed loops."""
    made = []
    for name in robots.__all__:
        signature = inspect.signature(getattr(robots, name), eval_str=True)
        needed = [p for p in signature.parameters.values() if p.default is p.empty]
        if not needed and signature.return_annotation is Robot:
            made.append(name)
    return made


def _parsed(call: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return (name, positional arguments, keyword arguments) of `name` or `name(...)`."""
    try:
        node = ast.parse(call.strip(), mode="eval").body
        if isinstance(node, ast.Name):
            return node.id, [], {}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            keywords = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
            return node.func.id, [ast.literal_eval(a) for a in node.args], keywords
    except (SyntaxError, ValueError):
        pass
    raise DefinitionError(f"{call!r} names no robot; write planar_biped, 'chain(12)' or file.py:function")


def _function(where: str, name: str) -> Callable[..., Any]:
    source: ModuleType = _loaded(Path(where)) if where else robots
    known = getattr(source, "__all__", None) or [n for n in vars(source) if not n.startswith("_")]
    found = getattr(source, name, None) if name in known else None
    if not callable(found):
        raise UnknownNameError("robot" if not where else f"function in {where}", name, known)
    return found


def _loaded(path: Path) -> ModuleType:
    """Return the module that a Python file defines."""
    if not path.is_file():
        raise DefinitionError(f"file {str(path)!r} does not exist")
    spec = importlib.util.spec_from_file_location(f"robot_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{str(path)!r} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DefinitionError(f"{str(path)!r} cannot be executed: {type(error).__name__}: {error}") from error
    return module
