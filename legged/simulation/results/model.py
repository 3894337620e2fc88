"""The model of a run, stored as JSON: robot, shapes of free bodies and obstacles, friction coefficient."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legged.contact.rigid import FreeBody, Rigid
from legged.errors import DefinitionError, FileError, LeggedError
from legged.ground.ground import Ground
from legged.robot.construction.description import describe_shape, read_shape
from legged.robot.robot import Robot
from legged.robot.shapes import Shape


@dataclass(frozen=True, eq=False)
class ModelRecord:
    """The robot and the surroundings of a run.

    Attributes:
        robot: The robot.
        source: Path of the file that the robot was loaded from, as it was given; "" for a robot built in code.
        bodies: Name of each free body -> its shapes, body axes.
        obstacles: Fixed shapes, world axes.
        friction: Coulomb friction coefficient of the ground; 0 without ground.
    """

    robot: Robot
    source: str
    bodies: dict[str, tuple[Shape, ...]]
    obstacles: tuple[Shape, ...]
    friction: float

    @staticmethod
    def of(robot: Robot, ground: Ground | Rigid | None = None, bodies: Sequence[FreeBody] = ()) -> ModelRecord:
        """Return the record of a robot on a ground beside free bodies.

        Args:
            robot: The robot. ground: The ground. bodies: Free bodies.
        """
        obstacles: tuple[Shape, ...] = ()
        if isinstance(ground, Rigid):
            friction, obstacles = ground.friction, tuple(box for _, box in ground.obstacles)
        else:
            friction = float(getattr(ground.friction, "coefficient", 0.0)) if ground is not None else 0.0
        shapes = {body.name: tuple(body.shapes) for body in bodies}
        return ModelRecord(robot, getattr(robot.audit, "source", ""), shapes, obstacles, friction)

    def to_json(self) -> str:
        """Return the record as JSON; "" if the robot has joints or a base of a user's own class."""
        try:
            robot = self.robot.describe()
        except DefinitionError:
            return ""
        bodies = {name: [describe_shape(shape) for shape in shapes] for name, shapes in self.bodies.items()}
        found: dict[str, Any] = {"robot": robot, "source": self.source, "bodies": bodies, "friction": self.friction}
        found["obstacles"] = [describe_shape(shape) for shape in self.obstacles]
        return json.dumps(found)

    @staticmethod
    def from_json(text: str, path: str | Path) -> ModelRecord | None:
        """Return the record in a text that `to_json` returned; None for "".

        Args:
            text: The text. path: The file that it was read from, for messages.

        Raises:
            FileError: The text is damaged.
        """
        if not text:
            return None
        try:
            data = json.loads(text)
            bodies = {
                str(name): tuple(read_shape(f"body {name!r}", shape) for shape in shapes)
                for name, shapes in data["bodies"].items()
            }
            obstacles = tuple(read_shape("an obstacle", shape) for shape in data["obstacles"])
            robot = Robot.from_description(data["robot"])
            return ModelRecord(robot, str(data["source"]), bodies, obstacles, float(data["friction"]))
        except (LeggedError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FileError(str(path), f"is a damaged run: its model cannot be read: {error}") from error
