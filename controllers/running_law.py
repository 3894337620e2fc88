"""`RunningLaw`: a control law outside of the simulator, in Python and as C."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import number, rounded_array, whole
from legged.checked import checked
from legged.compiler import Kernel, layout, trace
from legged.compiler import compile as compile_function
from legged.contact.rigid import Rigid
from legged.errors import ArgumentError, DefinitionError, ShapeError, SimulationWarning, warn_caller
from legged.robot.robot import Robot
from legged.simulation.controller import CommandedFunction, ControllerLike, adapt, full_torque

Array = np.ndarray
_UNLOADED = 0.1  # [s] for which all forces that a law reads may be zero: steps with all feet in the air are shorter


@checked
class RunningLaw:
    """A control law for a loop of one's own: a simulator of another program, or a robot.

        hopper = robots.planar_hopper()
        law = controllers.RunningLaw(lambda t, q, v, wrenches: 9.0 * (0.1 - q[3:]), hopper, q=hopper.neutral())
        print(law.needs)  # ('q',); of a Locomotion "wrenches on 'FL_calf'", too
        for k in range(5):
            tau = law.step(k / 500.0, hopper.neutral(), np.zeros(hopper.nv))  # send it, wait, and measure q and v

    `law.to_c("path")` writes the same as C99.

    Attributes:
        robot: The robot. law: The law as given.
        kernel: The law as machine code, a function (t, q, v, wrenches, memory) -> (memory, generalized forces), or
            (t, q, v, wrenches, memory, command) with a command.
        needs: The inputs that the law reads: t, q, v, command, and the links whose wrenches it reads.
        memory: Memory of the law after the last step, (m,), mixed units.
        initial_q, initial_v: The state at which the law begins, (nq,) and (nv,), mixed units.
    """

    def __init__(
        self, law: ControllerLike | CommandedFunction, robot: Robot, q: Any = None, v: Any = None, *, command: int = 0
    ):
        """Start a law and compile it.

        Args:
            law: The law. robot: The robot that it controls.
            q: First configuration, (nq,), [rad], [m] and unit quaternions, joint axes; that of the law by default.
            v: First velocity, (nv,), [rad/s] and [m/s], joint axes; that of the law, or zero with a given q.
            command: Number of entries of the command; 0 for a law without one.

        Raises:
            DefinitionError: The memory of the law is an integral over time, which simulations compute.
            TraceError: The law cannot be compiled.
        """
        size = whole("command", command, 0)
        begin = getattr(law, "initial_state", None)
        if q is None and begin is None:
            raise ArgumentError("give the first configuration q=, because the law has no initial_state")
        if q is None and begin is not None:
            q, planned = begin(robot)
            v = planned if v is None else v
        self.robot, self.law = robot, law
        self.initial_q = rounded_array("q", q)
        self.initial_v = rounded_array("v", np.zeros(robot.nv) if v is None else v)
        started, memory = adapt(law).start(robot, Rigid(), self.initial_q, self.initial_v)
        self._memory, self._started = memory, started
        self.kernel = self._compiled(size)
        self.memory = memory.copy()
        self._loaded_at: float | None = None
        self._warned = False
        read, names = self._read(), [link.name for link in robot.links]
        self._rows = [i for i in range(len(names)) if any(("wrenches", 6 * i + k) in read for k in range(6))]
        plain = [name for name in ("t", "q", "v", "command") if name in {name for name, _ in read}]
        self.needs = (*plain, *(f"wrenches on {names[i]!r}" for i in self._rows))

    def reset(self) -> None:
        """Begin again with the initial memory."""
        self.memory, self._loaded_at, self._warned = self._memory.copy(), None, False

    def step(self, t: float, q: Any, v: Any, wrenches: Any = None, command: Any = None) -> Array:
        """Return the generalized forces, (nv,), [N m] and [N], and advance the memory.

        A law with a clock, such as `Locomotion`, evaluates itself at the times k / rate and holds its result between.

        Args:
            t: Time since the first step, [s].
            q: Configuration, (nq,), [rad], [m] and unit quaternions, joint axes.
            v: Velocity, (nv,), [rad/s] and [m/s], joint axes.
            wrenches: Wrenches [n; f] of the ground, (n_links, 6), [N m] and [N], about each link's origin in link axes,
                or a mapping from names of links to wrenches; None only for a law that does not read them.
            command: (nu,), any unit, for a law with a command.

        Raises:
            ArgumentError: Wrenches or the command are missing. ShapeError, NotFiniteError: An array is wrong.
        """
        rows = self._wrenches(wrenches)
        arrays = [number("t", t, "s"), rounded_array("q", q), rounded_array("v", v), rows, self.memory]
        takes = len(self.kernel.arguments) > len(arrays)
        if takes != (command is not None):
            words = "takes a command: give command=" if takes else "was made without: RunningLaw(law, robot, command=3)"
            raise ArgumentError(f"{type(self.law).__name__} {words}")
        memory, tau = self.kernel(*arrays, *([rounded_array("command", command)] if takes else []))
        self._check_load(float(t), rows)
        self.memory = memory
        return tau

    def to_c(self, path: str | Path, precision: str | None = None, name: str | None = None) -> tuple[Path, Path]:
        """Write the law as C99, path.c and path.h, whose header names joints, units and order of each array.

        Args:
            path: Path of the files, with or without a suffix. precision: "double" or "float".
            name: Name of the C function; by default "law".
        """
        return self.kernel.to_c(path, precision, name)

    def _compiled(self, size: int) -> Kernel[Any, Any]:
        robot, started, memory = self.robot, self._started, self._memory

        def law(t: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> Any:
            after = started.update(t, 0.0, q, v, wrenches, memory)
            return after, full_torque(robot, started.torque(t, 0.0, q, v, wrenches, after))

        def law_with_command(t: Any, q: Any, v: Any, wrenches: Any, memory: Any, command: Any) -> Any:
            after = started.update(t, 0.0, q, v, wrenches, memory, command)
            return after, full_torque(robot, started.torque(t, 0.0, q, v, wrenches, after, command))

        links = len(robot.links)
        shapes = {"t": (), "q": (robot.nq,), "v": (robot.nv,), "wrenches": (links, 6), "memory": memory.shape}
        if len(memory):
            rates = trace(lambda t, *arrays: started.rate(t, 0.0, *arrays, *([np.zeros(size)] if size else [])), shapes)
            if any(isinstance(entry, int) or entry != 0.0 for entry in rates.results):
                raise DefinitionError(
                    f"the memory of {type(self.law).__name__} is an integral over time, which simulations compute; "
                    "write its discrete form as `update`"
                )
        if size:
            kernel = compile_function(law_with_command, **shapes, command=(size,))
        else:
            kernel = compile_function(law, **shapes)
        kernel.name = "law"
        kernel.layouts |= {name: layout(robot, name) for name in ("q", "v", "wrenches")}
        kernel.layouts |= {
            "t": "time since the first call, s",
            "memory": "result0 of the last call; at first " + _first(memory),
            "command": "the command",
            "result0": "the memory of the next call",
            "result1": layout(robot, "tau"),
        }
        return kernel

    def _read(self) -> set[tuple[str, int]]:
        """Return the entries of arguments, (name, index), that the law reads."""
        graph = self.kernel.graph
        used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
        used |= {r for r in graph.results if isinstance(r, int)}
        entries = [(name, i) for name, shape in graph.inputs for i in range(int(np.prod(shape)))]
        return {entry for k, entry in enumerate(entries) if k in used}

    def _wrenches(self, wrenches: Any) -> Array:
        names = [link.name for link in self.robot.links]
        if wrenches is None:
            if self._rows:
                read = ", ".join(repr(names[i]) for i in self._rows)
                raise ArgumentError(
                    f"{type(self.law).__name__} needs the wrenches of the ground on the links {read}: give wrenches= "
                    f"as ({len(names)}, 6), or a mapping from these names to [moment; force], [N m, N], in link axes"
                )
            return np.zeros((len(names), 6))
        if not isinstance(wrenches, Mapping):
            return rounded_array("wrenches", wrenches)
        rows = np.zeros((len(names), 6))
        for name, wrench in wrenches.items():
            row = rounded_array(f"the wrench on {name!r}", wrench)
            if row.shape != (6,):
                raise ShapeError(f"the wrench on {name!r} must be (6,), got shape {row.shape}")
            rows[self.robot.links.index(self.robot.link(name))] = row
        return rows

    def _check_load(self, t: float, wrenches: Array) -> None:
        """Warn once if all wrenches that the law reads have been zero for longer than a flight phase."""
        if not self._rows or self._warned:
            return
        loaded = wrenches.ndim == 2 and bool(wrenches[self._rows].any())
        if loaded or self._loaded_at is None:
            self._loaded_at = t
        elif t - self._loaded_at > _UNLOADED:
            self._warned = True
            warn_caller(
                f"all wrenches on the feet have been zero for {t - self._loaded_at:.2g} s: {type(self.law).__name__} "
                "reads from them which feet stand, and acts as if the robot flew; measure or estimate them",
                SimulationWarning,
            )


def _first(memory: Array) -> str:
    """Return the initial memory as text with all digits, in lines of eight numbers."""
    numbers = [repr(x) for x in memory.tolist()]
    lines = [", ".join(numbers[k : k + 8]) for k in range(0, len(numbers), 8)]
    return "{" + ",\n".join(lines) + "}" if numbers else "nothing"
