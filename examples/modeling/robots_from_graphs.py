"""Robots defined as graphs: a biped with legs of different length, a hexapod, a centaur and an octopod walk.

Run `python examples/modeling/robots_from_graphs.py results/graphs`; the folder gets a picture of the modules of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import numpy as np

import controllers
import legged
from legged import Link, Revolute, Robot, Spherical, Universal, box_inertia, rod_inertia

TOP = (0.0, 0.0, 0.0)


def biped() -> Robot:
    """Return a biped whose right leg is 80 mm longer than the left one."""
    graph: nx.DiGraph[str] = nx.DiGraph(name="biped with unequal legs")
    graph.add_node("pelvis", link=Link("pelvis", box_inertia(12.0, (0.2, 0.3, 0.4), (0, 0, 0.2))))
    for side, y, length in (("left", 0.1, 0.36), ("right", -0.1, 0.40)):
        thigh, shank, foot, end = f"{side}_thigh", f"{side}_shank", f"{side}_foot", (0, 0, -length)
        sole = {f"{foot}_{x}_{y}": (x / 100, y / 100, -0.06) for x in (-6, 12) for y in (-4, 4)}
        graph.add_node(thigh, link=Link(thigh, rod_inertia(2.0, TOP, end)))
        graph.add_node(shank, link=Link(shank, rod_inertia(1.5, TOP, end)))
        graph.add_node(foot, link=Link(foot, box_inertia(0.6, (0.18, 0.08, 0.04), (0.03, 0, -0.04)), sole))
        graph.add_edge("pelvis", thigh, joint=Spherical(f"{side}_hip", "zxy"), at=(0, y, 0))
        graph.add_edge(thigh, shank, joint=Revolute(f"{side}_knee", "-y"), at=end)
        graph.add_edge(shank, foot, joint=Universal(f"{side}_ankle", "-y", "x"), at=end)
    return Robot.from_graph(graph)


def add_limb(graph: nx.DiGraph[str], parent: str, name: str, at: tuple[float, ...], length: float, foot: bool) -> None:
    """Add two links of a length [m] on a universal and a revolute joint, with a point foot if the limb is a leg."""
    upper, lower, end = f"{name}_upper", f"{name}_lower", (0, 0, -length)
    graph.add_node(upper, link=Link(upper, rod_inertia(0.6, TOP, end)))
    graph.add_node(lower, link=Link(lower, rod_inertia(0.4, TOP, end), {f"{name}_foot": end} if foot else {}))
    graph.add_edge(parent, upper, joint=Universal(f"{name}_first", "x", "-y"), at=at)
    graph.add_edge(upper, lower, joint=Revolute(f"{name}_second", "-y"), at=end)


def many_legs(name: str, pairs: int) -> Robot:
    """Return a robot with pairs of legs along its trunk."""
    graph: nx.DiGraph[str] = nx.DiGraph(name=name)
    graph.add_node("trunk", link=Link("trunk", box_inertia(6.0, (0.3 * pairs, 0.4, 0.1))))
    for pair, x in enumerate(0.3 * (np.arange(pairs) - (pairs - 1) / 2), start=1):
        for side, y in (("left", 0.2), ("right", -0.2)):
            add_limb(graph, "trunk", f"{side}{pair}", (float(x), y, 0), 0.3, foot=True)
    return Robot.from_graph(graph)


def centaur() -> Robot:
    """Return a robot with four legs, and two arms on a torso that turns about its waist."""
    graph: nx.DiGraph[str] = nx.DiGraph(name="centaur")
    graph.add_node("trunk", link=Link("trunk", box_inertia(10.0, (0.8, 0.35, 0.25))))
    graph.add_node("torso", link=Link("torso", box_inertia(4.0, (0.2, 0.3, 0.4), (0, 0, 0.2))))
    graph.add_edge("trunk", "torso", joint=Revolute("waist", "z"), at=(0.4, 0, 0.1))
    for side, y in (("left", 0.2), ("right", -0.2)):
        add_limb(graph, "trunk", f"fore_{side}", (0.35, y, 0), 0.35, foot=True)
        add_limb(graph, "trunk", f"hind_{side}", (-0.35, y, 0), 0.35, foot=True)
        add_limb(graph, "torso", f"arm_{side}", (0, y, 0.4), 0.2, foot=False)
    return Robot.from_graph(graph)


CASES = (  # robot, gait, commanded speed [m/s]
    (biped(), "walk", 0.2),
    (many_legs("hexapod", 3), "tripod", 0.3),
    (centaur(), "trot", 0.3),
    (many_legs("octopod", 4), "trot", 0.3),
)


def main(folder: Path) -> None:
    """Print the modules of each robot, draw them, and let it walk for 6 s; the first two seconds are the start."""
    folder.mkdir(parents=True, exist_ok=True)
    good = 0
    for robot, gait, speed in CASES:
        modules = "; ".join(f"{module.name}: {', '.join(module.links)}" for module in legged.partition(robot.graph))
        print(f"{robot.name}: {len(robot.modules)} modules, alike are {robot.alike_modules}\n  {modules}")
        robot.draw_modules().savefig(folder / f"{robot.name.replace(' ', '_')}.png", dpi=130)
        law = controllers.Locomotion(gait, controllers.Command(vx=speed))
        ground, steps = legged.Rigid(friction=0.7), legged.TimeStepping(2e-3)  # [s]
        run = legged.simulate(robot, law, ground=ground, until=6.0, integrator=steps)
        x = run.base.position[:, 0]
        walked = (x[-1] - x[run.at(2.0)]) / (run.times[-1] - 2.0)
        print(f"  {gait}: {x[-1]:.2f} m in {run.times[-1]:g} s, then {walked:.3f} of {speed:.3f} m/s {run.ended}")
        good += not run.ended and abs(walked - speed) < 0.1 * speed
    print(f"{good} of {len(CASES)} walk at the commanded speed within 10 %")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/graphs"))
