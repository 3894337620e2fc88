"""Start time and memory of scenes against their number of boxes: `python -m benchmarks.contact --growth`.

Each scene is a tower of boxes, every pair of which may collide. A new process with an empty cache simulates two steps.
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
from pathlib import Path

from benchmarks.contact.scenes import ours
from benchmarks.contact.stacks import tower_of

BOXES = (2, 4, 8, 16, 32, 64)
"""Numbers of boxes."""
_POINTS = 4  # contact candidates of two boxes, and of a box on the terrain


def candidates(boxes: int) -> int:
    """Return the number of contact candidates of a tower, every pair of which may collide."""
    return _POINTS * boxes * (boxes + 1) // 2


def start(boxes: int) -> tuple[float, float]:
    """Return the processor time of two steps [s] and the memory of this process [MB]."""
    world = tower_of([1.0] * boxes, neighbors=False)
    begin = time.process_time()
    ours(world, 2e-3)
    return time.process_time() - begin, peak_memory()


def peak_memory() -> float:
    """Return the largest memory that this process has used, [MB].

    On Linux `ru_maxrss` of a new process begins with the memory of the process that started it, `VmHWM` does not.
    """
    status = Path("/proc/self/status")
    known = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    if known:
        return int(known[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def measured(boxes: int) -> tuple[float, float, float]:
    """Return the times of `start` with an empty and with a filled cache [s] in new processes, and the memory [MB]."""
    command = [sys.executable, "-m", "benchmarks.contact.growth", str(boxes)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LEGGED_CACHE": folder}
        cold, warm = (
            json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
            for _ in range(2)
        )
    return cold[0], warm[0], cold[1]


def growth_table(path: Path, boxes: tuple[int, ...]) -> str:
    """Return a Markdown table of start time and memory, and draw them.

    Args:
        path: File of the figure. boxes: Numbers of boxes.
    """
    rows = [(n, candidates(n), *measured(n)) for n in boxes]
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
    print(json.dumps(start(int(sys.argv[1]))))
