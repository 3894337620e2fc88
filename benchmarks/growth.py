"""How times grow: with the links of a robot, with the states of a batch, with threads."""

from collections.abc import Callable

import numpy as np

import legged
import robots
from benchmarks import loops
from benchmarks.agreement import agree
from benchmarks.compiling import start
from benchmarks.pinocchio_side import Pinocchio, pinocchio
from benchmarks.record import Record
from benchmarks.settings import Settings
from benchmarks.subjects import FORWARD, FUNCTIONS, INVERSE
from benchmarks.timing import Spread, Way, calls, in_threads, race
from benchmarks.words import table
from legged.app.paper.timing import states
from legged.compiler.runtime.threads import default_threads
from legged.table import Table

LINKS, BATCH, THREADS = "growth with links", "growth with the batch", "growth with threads"
OURS_ONE, OURS_BATCH, OURS_ALL = "ours, one state", "ours, batch", "ours, batch, all cores"
PIN_ONE, PIN_BATCH, PIN_ALL = "Pinocchio, one state", "Pinocchio, batch", "Pinocchio, batch, all cores"
OURS_LOOP, MUJOCO_LOOP = "ours, closed loop", "mujoco.rollout"
COMPILATION = "compilation"
ROBOTS: dict[str, Callable[[int], legged.Robot]] = {
    "chain": lambda n: robots.chain(n, twist=0.7),
    "tree": lambda n: legged.random_tree(1, n, joints=("revolute",), bases=("floating",), branching=0.3),
}
FEWEST, MEMBERS, MOST = 4, 256, 16384
"""Links of the smallest robot; states of a batch for every robot; states of the largest batch."""
PINOCCHIOS = 256
"""Links of the largest robot for Pinocchio, whose working memory grows with the cube: 9 GB at 512 links."""
ALLOWED = {FORWARD: 1e-8, INVERSE: 1e-11}
"""Relative disagreement: a chain of hundreds of links is badly conditioned, which accelerations show."""


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add all three growths to the record, and return them as tables."""
    return [links(record, settings), batch(record, settings), threads(record, settings)]


def links(record: Record, settings: Settings) -> Table:
    """Add times over the number of links."""
    for shape, make in ROBOTS.items():
        for n in sizes(FEWEST, settings.links):
            robot = make(n)
            record.add((LINKS, shape, str(n), FORWARD, COMPILATION), "s", Spread.of([start(robot)]))
            for name in ALLOWED:
                times = race(_on_robot(robot, name), settings.rounds)
                for way, taken in times.items():
                    record.add((LINKS, shape, str(n), name, way), "us", taken.spread(1e6))
    shown = {way: way for way in (OURS_ONE, OURS_BATCH, PIN_ONE, PIN_BATCH, COMPILATION)}
    notes = (f"Microseconds for one state, on one core; batches of {MEMBERS}. Compilation: seconds, one state, cold.",)
    return table(record, LINKS, ("robot", "links", "function"), shown, "Growth with links", notes)


def _on_robot(robot: legged.Robot, name: str) -> dict[str, Way]:
    every = states(robot, MEMBERS)
    kernel, out = legged.compile(FUNCTIONS[name].plain, robot), np.empty_like(every[1])
    ways = {
        OURS_ONE: Way(calls(kernel, *(array[0] for array in every))),
        OURS_BATCH: Way(in_threads(1, kernel, every, out), MEMBERS),
    }
    ways[OURS_BATCH].run(1)
    plain = FUNCTIONS[name].plain(robot, *(array[0] for array in every))
    agree(f"{robot.name}, {name}, compiled and plain", out[:1], plain[None], ALLOWED[name])
    if pinocchio() and robot.nj <= PINOCCHIOS:
        theirs = Pinocchio(robot, every)
        ways[PIN_ONE] = theirs.one(name)
        ways[PIN_BATCH], rows = theirs.batch(name)
        agree(f"{robot.name}, {name}, Pinocchio", out, rows, ALLOWED[name])
    return ways


def batch(record: Record, settings: Settings) -> Table:
    """Add times over the number of states in a call."""
    robot = robots.spatial_quadruped()
    kernel, every = legged.compile(legged.forward_dynamics, robot), states(robot, MOST)
    kernel(*every)  # compiled for batches from now on
    for n in sizes(1, MOST):
        some = [array[:n] for array in every]
        out = np.empty_like(some[1])
        ways = {
            way: Way(in_threads(t, kernel, some, out), n, t > 1)
            for way, t in ((OURS_BATCH, 1), (OURS_ALL, default_threads()))
        }
        if pinocchio():
            theirs = Pinocchio(robot, some)
            ways[PIN_BATCH], _ = theirs.batch(FORWARD)
            ways[PIN_ALL], _ = theirs.batch(FORWARD, default_threads())
        for way, taken in race(ways, settings.rounds).items():
            record.add((BATCH, str(n), way), "us", taken.spread(1e6))
    shown = {way: way for way in (OURS_BATCH, OURS_ALL, PIN_BATCH, PIN_ALL)}
    notes = (f"Microseconds for one state: forward dynamics of the {robot.name}, called from Python.",)
    return table(record, BATCH, ("states",), shown, "Growth with the batch", notes)


def threads(record: Record, settings: Settings) -> Table:
    """Add rates over the number of threads."""
    robot = robots.spatial_quadruped()
    kernel, every = legged.compile(legged.forward_dynamics, robot), states(robot, MOST)
    out, loop = np.empty_like(every[1]), loops.trot(robot, settings.states)
    ways = {}
    for t in range(1, default_threads() + 1):
        ways[t, OURS_BATCH] = Way(in_threads(t, kernel, every, out), MOST, True)
        ways[t, OURS_LOOP] = Way(calls(loop, t), settings.states * loops.STEPS, True)
        if pinocchio():
            ways[t, PIN_BATCH] = Pinocchio(robot, every).batch(FORWARD, t)[0]._replace(threads=True)
        if loops.mujoco():
            ways[t, MUJOCO_LOOP] = loops.standing(robot, t)._replace(threads=True)
    for (t, way), taken in race(ways, settings.rounds).items():
        record.add((THREADS, str(t), way), "per s", taken.rate())
    shown = {way: way for way in (OURS_BATCH, PIN_BATCH, OURS_LOOP, MUJOCO_LOOP)}
    notes = (f"States a second of batches of {MOST} (forward dynamics), steps a second (closed loops), {robot.name}.",)
    return table(record, THREADS, ("threads",), shown, "Growth with threads", notes)


def sizes(first: int, last: int) -> list[int]:
    """Return first, twice as many, ..., and last."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return [*found, last]
