"""Robots, named"""

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


def robot_named(text: str, base: str | None = None) -> Robot:
    """Return the tree that a text names: one of `robots`, or `file.py:function`, or a URDF or MJCF file.

    Args, Raises: As of `any_robot_named`; DefinitionError for a function that gives a robot with closed loops, too.
    """
    if text.lower().endswith(FILES):
        return load(text, base)
    made = any_robot_named(text, base)
    if isinstance(made, ClosedRobot):
        raise DefinitionError(
            f"{text!r} has closed loops, which this command does not know; `legged info` and `legged count` do, and "
            f"`legged.loops` in Python"
        )
    return made


def any_robot_named(text: str, base: str | None = None) -> Robot | ClosedRobot:
    """Return the robot that a text names, with its loops if it has some.

    Args:
        text: One of `robots`, or `file.py:function`, or a URDF or MJCF file; arguments are plain Python numbers,
            strings and tuples.
        base: A key of `BASES` instead of the robot's own base, for a function that takes `base`.

    Raises:
        UnknownNameError: no such robot, function or base. DefinitionError: a text, file or arguments that do not work.
        FileError: a URDF or MJCF file that `legged.load` refuses.
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
        raise DefinitionError(f"robot {text!r} cannot be made: {error}; it is {usage}") from error
    made = make(*positional, **keywords)
    if not isinstance(made, (Robot, ClosedRobot)):
        raise DefinitionError(f"{text!r} gives {type(made).__name__}, not a Robot; build it with RobotBuilder")
    return made


def ready_made() -> list[str]:
    """Return the names of all trees of `robots` that need no argument; robots with closed loops are left out."""
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
        raise DefinitionError(f"there is no file {str(path)!r} to take a robot from")
    spec = importlib.util.spec_from_file_location(f"robot_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{str(path)!r} is no Python file; a robot's file ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DefinitionError(f"{str(path)!r} does not run: {type(error).__name__}: {error}") from error
    return module
