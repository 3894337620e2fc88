"""Select robots, gaits, controllers, grounds and terrains by the texts of command-line arguments.

The text of a robot is a function of `robots` (`planar_biped`, `chain(12)`), a function or a variable of a file
(`my_robot.py:biped(legs=2)`, `my_robot.py:robot`), or the path of a URDF or MJCF file (`go2.urdf`, `scene.xml`).
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import controllers
import robots
from controllers import Gait, GaitLaw, NumericalGait, suited, suited_law
from legged.algorithms.legs.leg_chains import leg_chains
from legged.arguments import known_name
from legged.errors import DefinitionError, LeggedError, UnknownNameError
from legged.files.load import load
from legged.ground import Flat, Ground, HeightMap, Slope, Stairs, Terrain, paper_ground, realistic_ground
from legged.ground.height_files import MAPS
from legged.loops import ClosedRobot
from legged.loops import load as load_closed
from legged.robot.base import Base, FixedBase, FloatingBase, PlanarBase
from legged.robot.robot import Robot

FILES = (".urdf", ".xml", ".mjcf")
BASES: dict[str, type[Base]] = {"floating": FloatingBase, "fixed": FixedBase, "planar": PlanarBase}
CONTROLLERS: dict[str, type[GaitLaw]] = {
    "computed-torque": controllers.ComputedTorque,
    "feed-forward": controllers.FeedForward,
    "none": controllers.OpenLoop,
    "balanced": controllers.Balanced,
    "servo": controllers.JointPD,
}
"""Controllers by name: "none" replays the torques of inverse dynamics without feedback, "balanced" adds feedback of the
trunk and foot placement, "servo" controls each joint independently."""
BALANCED_GAITS: dict[str, Gait] = {
    "Walk": controllers.Walk(hip_height=0.93, clearance=0.06),
    "Trot": controllers.Trot(period=0.4, stride=0.15, clearance=0.06),
    "Tripod": controllers.Tripod(stride=0.2),
}
"""Gaits for the balanced controller: low hips for long recovery steps, short steps for point feet."""
GROUNDS: dict[str, Callable[..., Ground]] = {"paper": paper_ground, "realistic": realistic_ground}


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
        text: A robot of `robots`, `file.py:function`, `file.py:variable`, or a URDF or MJCF file; arguments are Python
            literals.
        base: Key of `BASES` that replaces the base of the robot, for a function with an argument `base`.

    Raises:
        UnknownNameError: an unknown robot, function or base.
        DefinitionError: an invalid text, file or argument, or a function that fails.
        FileError: a URDF or MJCF file that `legged.load` rejects.
    """
    if text.lower().endswith(FILES):
        closed = load_closed(text, base)
        return closed if closed.loops else closed.robot
    where, _, call = text.rpartition(":")
    if not where and text.endswith(".py"):
        raise DefinitionError(f"{text!r} names no robot; add a function or a variable of the file: {text}:NAME")
    name, positional, keywords = _parsed(call)
    source = _found(where, name)
    if isinstance(source, (Robot, ClosedRobot)):
        if base is not None or call.strip() != name:
            raise DefinitionError(f"{text!r} is a robot, which takes no arguments and no other base; use a function")
        return source
    if base is not None:
        if base not in BASES:
            raise UnknownNameError("base", base, BASES)
        keywords["base"] = BASES[base]()
    try:
        inspect.signature(source).bind(*positional, **keywords)
    except TypeError as error:
        usage = f"{name}{inspect.signature(source)}"
        raise DefinitionError(f"robot {text!r} cannot be created: {error}; its signature is {usage}") from error
    try:
        made = source(*positional, **keywords)
    except LeggedError:
        raise
    except Exception as error:
        raise DefinitionError(f"robot {text!r} cannot be created: {type(error).__name__}: {error}") from error
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


def _found(where: str, name: str) -> Robot | ClosedRobot | Callable[..., Any]:
    """Return the robot, or the function that builds it, with a name in a file, or in `robots` for an empty `where`."""
    source = vars(load_module(Path(where))) if where else {n: getattr(robots, n) for n in robots.__all__}
    known = {n: x for n, x in source.items() if isinstance(x, (Robot, ClosedRobot, FunctionType)) and n[0] != "_"}
    if name not in known:
        raise UnknownNameError("robot" if not where else f"function or robot in {where}", name, known)
    return known[name]


def load_module(path: Path) -> ModuleType:
    """Return the module that a Python file defines.

    Args:
        path: The file. Its code is executed.
    """
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


def default_controller(robot: Robot, gait: str) -> str:
    """Return the name of the default controller of a gait: balanced unless the gait is tuned for the robot."""
    if gait == "Stand":
        return "balanced"
    return "computed-torque" if robot.audit is None or gait == "Crawl" else "balanced"


def default_ground(robot: Robot, gait: str) -> str:
    """Return the name of the default ground: that of the paper for robots defined in code."""
    return "realistic" if gait == "Stand" or robot.audit is not None else "paper"


def select_gait(name: str, robot: Robot, controller: str, **given: float | None) -> Gait | NumericalGait:
    """Return a gait of `controllers` for a robot and a control law, with the given attributes where they are not None.

    Robots from files, and standing robots, get a gait scaled to their size; robots defined in code that of the paper.
    """
    kind = getattr(controllers, name)
    if issubclass(kind, controllers.Walk) and isinstance(robot.base, FloatingBase) and len(leg_chains(robot)) == 2:
        raise DefinitionError(
            f"robot {robot.name!r} has two legs and moves in space: no control law here balances its walk sideways; "
            f"use `stand`, or walk with a planar base as planar_biped does"
        )
    known_name("controller", controller, CONTROLLERS)
    if robot.audit is not None or name == "Stand":
        return suited(kind, robot, home=None, **given)
    usual = BALANCED_GAITS.get(name) if controller == "balanced" else None
    return replace(usual or kind(), **{k: x for k, x in given.items() if x is not None})


def select_controller(name: str, gait: Any) -> Any:
    """Return a controller for a gait, with gains scaled to the robot for scaled gaits and default gains otherwise."""
    kind = CONTROLLERS[known_name("controller", name, CONTROLLERS)]
    return suited_law(kind, gait) if isinstance(gait, NumericalGait) else kind(gait)


def select_ground(name: str, robot: Robot, terrain: Terrain | None = None) -> Ground:
    """Return the named ground model for a robot, on a terrain; level if None."""
    return GROUNDS[known_name("ground", name, GROUNDS)](robot, terrain=terrain)


def parse_terrain(text: str, size: tuple[float, float] | None = None) -> Terrain:
    """Return a terrain from `flat`, `slope:DEGREES` (uphill along x), `steps:RISE[,RUN]` in meters, or a file.

    Steps begin 0.5 m ahead and are 1 m long unless RUN says otherwise. The middle of a map from a file is the origin.

    Args:
        text: The terrain, or the path of a height map.
        size: Width of the map along x and height of white above black, [m]; those of a table are in [m] already.
    """
    suffix = Path(text).suffix.lower()
    if suffix in MAPS or (size is not None and suffix):  # `HeightMap.from_file` names the formats that it reads
        if size is None:
            raise DefinitionError(f"terrain {text!r} needs --size WIDTH RISE in meters, such as --size 10 0.5")
        return HeightMap.from_file(text, size[0], None if suffix == ".csv" else size[1])
    if size is not None:
        raise DefinitionError(f"--size belongs to a terrain from a file, such as --terrain map.png, got {text!r}")
    name, _, rest = text.partition(":")
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
        return _TERRAINS[name](*numbers)
    except (KeyError, TypeError, ValueError):  # another name, another number of arguments, no numbers
        words = "flat, slope:DEGREES, steps:RISE[,RUN] in meters or a height map such as map.png"
        raise DefinitionError(f"terrain must be {words}, got {text!r}") from None


def _steps(rise: float, run: float = 1.0) -> Stairs:
    return Stairs(tuple(0.5 + run * k for k in range(50)), (rise,) * 50)


_TERRAINS: dict[str, Callable[..., Terrain]] = {
    "flat": lambda: Flat(),
    "slope": lambda degrees: Slope(float(np.radians(degrees))),
    "steps": _steps,
}
"""Terrains by name, as functions of the numbers behind the colon."""
