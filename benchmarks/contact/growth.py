"""Start time and memory of scenes: `python -m benchmarks.contact --growth` and `--starts`.

A new process with an empty cache simulates two steps. `--growth` measures towers of boxes, every pair of which may
collide, against their number, and `--starts` scenes of many kinds.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import controllers
import legged
import robots
from benchmarks.contact.scenes import ours
from benchmarks.contact.stacks import tower_of
from benchmarks.harness.subjects import robot_file
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, FreeBody, Hull, Rigid, Scene, Sphere

BOXES = (2, 4, 8, 16, 32, 64)
"""Numbers of boxes."""
_POINTS = 4  # contact candidates of two boxes, and of a box on the terrain
SECONDS, MEGABYTES = 2.0, 300.0
"""Largest start time [s] and memory [MB] of a scene."""
_HERE = "--in-this-process"
"""Option of the command that measures its own process."""
GO2 = "go2_description/urdf/go2.urdf"
ANYMAL = "anymal_c_simple_description/urdf/anymal.urdf"
G1 = "g1_description/urdf/g1_29dof_rev_1_0.urdf"
TALOS = "talos_data/robots/talos_reduced.urdf"
SHAPES: dict[str, Any] = {
    "box": Box((0.2, 0.2, 0.2)),
    "sphere": Sphere(0.1),
    "capsule": Capsule(0.05, 0.2),
    "cylinder": Cylinder(0.08, 0.2),
    "ellipsoid": Ellipsoid((0.1, 0.08, 0.05)),
    "hull": Hull(0.1 * np.array([(0, 0, 1), (1, 0, 0), (-1, 1, 0), (-1, -1, 0), (0, 0, -1)])),
    "tetrahedron": Hull(0.1 * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])),
    "prism": Hull(0.1 * np.array([(x, y, z) for x, y in ((1, 0), (-1, 1), (-1, -1)) for z in (-1, 1)])),
}
"""Shapes of free bodies, [m]."""


def candidates(boxes: int) -> int:
    """Return the number of contact candidates of a tower, every pair of which may collide."""
    return _POINTS * boxes * (boxes + 1) // 2


def loose(kinds: tuple[str, ...]) -> list[FreeBody]:
    """Return bodies of some kinds of `SHAPES` side by side above the ground, all of which may collide."""
    inertia, bodies = legged.box_inertia(1.0, (0.2, 0.2, 0.2)), list[FreeBody]()
    for k, kind in enumerate(kinds):
        bodies.append(FreeBody(f"body{k}", inertia, [SHAPES[kind]], (1.0 + 0.3 * (k % 4), 0.3 * (k // 4), 0.15)))
    return bodies


Arguments = dict[str, Any]
"""Arguments of `legged.simulate`: robot, ground, bodies and the initial configuration."""


def bodies(*kinds: str) -> Arguments:
    """Return a scene of free bodies of some kinds of `SHAPES`, the first of which is the robot."""
    first, *others = loose(kinds)
    names = [first.name, *(body.name for body in others)]
    pairs = [(a, b) for k, a in enumerate(names) for b in [*names[k + 1 :], "terrain"]]
    return {"robot": first.robot(), "ground": Rigid(0.5, pairs=tuple(pairs)), "bodies": others, "q": first.state()[0]}


def beside_post(*kinds: str) -> Arguments:
    """Return a scene of free bodies of some kinds of `SHAPES` beside a fixed robot without joints."""
    link = legged.Link("post", legged.box_inertia(1.0, (0.2, 0.2, 0.2)), shapes=[SHAPES["box"]])
    robot = legged.RobotBuilder("post", link, base=legged.FixedBase()).build()
    return {"robot": robot, "ground": Rigid(0.5), "bodies": loose(kinds), "q": robot.neutral()}


def quadruped(*kinds: str, friction: bool = False) -> Arguments:
    """Return a scene of a quadruped without shapes among free bodies; its joints have dry friction by choice."""
    robot = robots.spatial_quadruped()
    if friction:
        robot = robot.with_parameters({f"{joint.name}.friction": 0.1 for joint in robot.joints})
    return {"robot": robot, "ground": Rigid(0.5), "bodies": loose(kinds), "q": _raised(robot)}


def loaded(*files: str, kinds: tuple[str, ...] = (), floor: bool = False, self_collision: bool = False) -> Arguments:
    """Return a scene of robots with all shapes of their files, side by side, and free bodies.

    Args:
        files: File of each robot. kinds: Kinds of the free bodies.
        floor: Whether all shapes touch the terrain, not the feet alone.
        self_collision: Whether links of a robot collide.
    """
    ones = [legged.load(robot_file(file), shapes=True) for file in files]
    robot, q = ones[0], _raised(ones[0])
    if len(files) > 1:
        robot = legged.combine({f"robot{k}": one for k, one in enumerate(ones)})
        states = {f"robot{k}": _raised(one) + k * np.eye(one.nq)[5] for k, one in enumerate(ones)}
        q, _ = robot.join_states(states)
    feet = {contact.link for contact in robot.contacts}
    links = [link.name for link in robot.links if link.shapes or link.index in feet]
    pairs = tuple((name, "terrain") for name in links) if floor else None
    return {
        "robot": robot,
        "ground": Rigid(0.5, pairs=pairs, self_collision=self_collision),
        "bodies": loose(kinds),
        "q": q,
    }


def _raised(robot: legged.Robot) -> Any:
    """Return a standing posture 0.1 m above the ground, (nq,)."""
    home = controllers.home_of(robot)
    return controllers.Posture(tuple(home.angles), home.base_height + 0.1).initial_state(robot)[0]


MIXED = tuple(SHAPES)[:6]
SCENES: dict[str, Callable[[], Arguments]] = {
    **{f"{n} {'box' if n == 1 else 'boxes'}": partial(bodies, *["box"] * n) for n in range(1, 13)},
    **{f"{n} spheres": partial(bodies, *["sphere"] * n) for n in (3, 4, 6, 12)},
    "4 ellipsoids": partial(bodies, *["ellipsoid"] * 4),
    "3 capsules": partial(bodies, *["capsule"] * 3),
    "6 cylinders": partial(bodies, *["cylinder"] * 6),
    "one body of each of 6 shapes": partial(bodies, *MIXED),
    "two bodies of each of 6 shapes": partial(bodies, *MIXED * 2),
    "30 bodies of 8 shapes": partial(bodies, *(tuple(SHAPES) * 4)[:30]),
    "fixed box beside 12 boxes": partial(beside_post, *["box"] * 12),
    "quadruped beside 1 box": partial(quadruped, "box"),
    "quadruped beside 3 boxes": partial(quadruped, *["box"] * 3),
    "quadruped with dry friction beside 1 box": partial(quadruped, "box", friction=True),
    "quadruped with dry friction beside 3 boxes": partial(quadruped, *["box"] * 3, friction=True),
    **{
        f"{name}{words}": partial(loaded, file, **options)
        for name, file in {"Go2": GO2, "ANYmal C": ANYMAL, "G1": G1, "Talos": TALOS}.items()
        for words, options in {
            " on its feet": {},
            " with all shapes on the floor": {"floor": True},
            " with self-collision": {"self_collision": True},
            " beside 1 box": {"kinds": ("box",)},
            " beside 4 boxes": {"kinds": ("box",) * 4},
        }.items()
    },
    "two Go2s": partial(loaded, GO2, GO2),
    "Go2 and ANYmal C": partial(loaded, GO2, ANYMAL),
    "three Go2s": partial(loaded, GO2, GO2, GO2),
    "Go2 and G1": partial(loaded, GO2, G1),
    "Go2 and Talos": partial(loaded, GO2, TALOS),
    "ANYmal C and G1": partial(loaded, ANYMAL, G1),
    "two G1s": partial(loaded, G1, G1),
    "two Taloses": partial(loaded, TALOS, TALOS),
    "G1 and Talos": partial(loaded, G1, TALOS),
}
"""Scenes by name."""


class Start(NamedTuple):
    """The start of a scene: processor and elapsed time of two steps, memory of the process, and contact candidates."""

    processor: float  # [s]
    elapsed: float  # [s]
    memory: float  # [MB]
    candidates: int


def start(scene: str) -> Start:
    """Return the start of a scene in this process.

    Args:
        scene: A name of `SCENES`, or a number of boxes of a tower.
    """
    if scene.isdecimal():
        world, count = tower_of([1.0] * int(scene), neighbors=False), candidates(int(scene))
        begin = time.process_time(), time.perf_counter()
        ours(world, 2e-3)
    else:
        arguments = SCENES[scene]()
        robot, ground, others = (arguments[name] for name in ("robot", "ground", "bodies"))
        count = len(Scene.of(robot, ground, others).candidates)
        begin = time.process_time(), time.perf_counter()
        legged.simulate(**arguments, until=2e-3, integrator=legged.TimeStepping(1e-3), fall=False)
    return Start(time.process_time() - begin[0], time.perf_counter() - begin[1], peak_memory(), count)


def peak_memory() -> float:
    """Return the largest memory that this process has used, [MB].

    On Linux `ru_maxrss` of a new process begins with the memory of the process that started it, `VmHWM` does not.
    """
    status = Path("/proc/self/status")
    known = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    if known:
        return int(known[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def measured(scene: str) -> tuple[Start, Start]:
    """Return the starts of a scene with an empty and with a filled cache, in new processes.

    The process that optimizes code of the first start is not measured. Another start, without it, fills the cache.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        cold, _, warm = (_in_new_process(scene, folder, without) for without in ("", "two stages", ""))
    return cold, warm


def from_empty_cache(scene: str) -> Start:
    """Return the start of a scene in a new process with an empty cache and all mechanisms, as users have them."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return _in_new_process(scene, folder, "")


def _in_new_process(scene: str, folder: str, without: str) -> Start:
    """Return the start of a scene in a new process with a cache folder and without some mechanisms of the compiler."""
    command = [sys.executable, "-m", "benchmarks.contact.growth", scene, _HERE]
    variables = {**os.environ, "LEGGED_CACHE": folder, "LEGGED_WITHOUT": without}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return Start(*json.loads(done.stdout))


def starts_table(scenes: Iterable[str] = SCENES) -> str:
    """Return a Markdown table of start time and memory of scenes.

    Args:
        scenes: Names of `SCENES`.
    """
    rows = [(name, *measured(name)) for name in scenes]
    lines = [
        "| scene | candidates | empty cache [s] | elapsed [s] | filled cache [s] | memory [MB] |",
        f"| --- |{' ---: |' * 5}",
    ]
    lines += [
        f"| {name} | {cold.candidates} | {cold.processor:.2f} | {cold.elapsed:.2f} | {warm.processor:.2f} | "
        f"{cold.memory:.0f} |"
        for name, cold, warm in rows
    ]
    return "\n".join(lines) + "\n"


def growth_table(path: Path, boxes: tuple[int, ...]) -> str:
    """Return a Markdown table of start time and memory, and draw them.

    Args:
        path: File of the figure. boxes: Numbers of boxes.
    """
    starts = [(n, *measured(str(n))) for n in boxes]
    rows = [(n, candidates(n), cold.processor, warm.processor, cold.memory) for n, cold, warm in starts]
    _draw(path, rows)
    lines = ["| boxes | candidates | empty cache [s] | filled cache [s] | memory [MB] |", f"|{' ---: |' * 5}"]
    lines += [f"| {n} | {count} | {cold:.2f} | {warm:.2f} | {memory:.0f} |" for n, count, cold, warm, memory in rows]
    return "\n".join(lines) + "\n"


def _draw(path: Path, rows: list[tuple[int, int, float, float, float]]) -> None:
    from matplotlib.figure import Figure

    _, count, cold, warm, memory = zip(*rows, strict=True)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    times, space = figure.subplots(1, 2)
    times.plot(count, cold, "o-", label="empty cache")
    times.plot(count, warm, "s-", label="filled cache")
    times.set(xscale="log", xlabel="contact candidates", ylabel="start and two steps [s]", ylim=(0.0, None))
    times.legend(frameon=False)
    space.plot(count, memory, "o-")
    space.set(xscale="log", xlabel="contact candidates", ylabel="memory of the process [MB]", ylim=(0.0, None))
    for axes in (times, space):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    if _HERE in sys.argv:
        print(json.dumps(start(sys.argv[1])))
    else:
        seconds, elapsed, megabytes, count = from_empty_cache(sys.argv[1])
        print(f"processor {seconds:.2f} s, elapsed {elapsed:.2f} s, {megabytes:.0f} MB, {count} candidates")
