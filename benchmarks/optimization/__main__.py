"""Our solver on Crocoddyl's gait problems: python -m benchmarks.optimization INTERPRETER [NAMES...].

INTERPRETER is a Python with crocoddyl, see `crocoddyl_problems`. Both run on one thread; the processor times are the
shortest of several. The optimum is compared. Ours is measured on two threads too, where the time is elapsed time, and
with 64 initial states, each perturbed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import legged
from legged import optimization as oc
from legged.compiler import thread_limit
from legged.rotations import quaternion_log

terms = oc.terms
STARTS = 64
NAMES = ("go2", "hyq", "talos_legs")
UNBOUNDED = 1e300
TWICE = ("left_sole_link", "right_sole_link")
"""Links whose inertia the loader of Talos' legs counts twice, in that of the ankle and again with the frame."""


def logarithm(phi: Any, p: Any) -> Any:
    """Return the linear part of the logarithm of SE(3), (3,), for a rotation vector and a translation."""
    square = phi @ phi
    small = square < 1e-8
    angle = np.sqrt(legged.where(small, 1.0, square))
    half = 0.5 * angle
    factor = (1.0 - half * np.cos(half) / np.sin(half)) / legged.where(small, 1.0, square)
    turned = np.cross(phi, p)
    return p - 0.5 * turned + legged.where(small, 1.0 / 12.0, factor) * np.cross(phi, turned)


def deviation(robot: Any, at: Any, q: Any, v: Any) -> Any:
    """Return the deviation of the state, with the base's pose by the logarithm of SE(3)."""
    dq = legged.difference(robot, q, at.q)
    return np.concatenate([dq[:3], logarithm(dq[:3], dq[3:6]), dq[6:], at.v - v])


def cone_rows(robot: Any, at: Any, contact: str, matrix: Any, offset: Any) -> Any:
    """Return matrix @ force + offset, the margins of a linearized friction cone."""
    return matrix @ at.forces[contact] + offset


def wrench_rows(robot: Any, at: Any, contact: str, matrix: Any, offset: Any) -> Any:
    """Return matrix @ [f; n] + offset, the margins of a linearized cone of wrenches."""
    w = at.forces[contact]
    return matrix @ np.concatenate([w[3:], w[:3]]) + offset


def placement(robot: Any, at: Any, frame: str, rotation: Any, position: Any) -> Any:
    """Return the logarithm of SE(3) of the displacement of a frame from a placement, (6,)."""
    pose = legged.frame_pose(robot, at.q, frame)
    E = rotation.T @ pose.rotation
    w = 0.5 * np.sqrt(1.0 + E[0, 0] + E[1, 1] + E[2, 2])  # of a rotation by less than 180 degrees
    xyz = np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]]) / (4.0 * w)
    phi = quaternion_log(np.concatenate([np.array([w]), xyz]))
    return np.concatenate([phi, logarithm(phi, rotation.T @ (pose.position - position))])


class Translated:
    """A problem of Crocoddyl as one of ours.

    Attributes:
        record: What `crocoddyl_problems` wrote. problem: Ours. controls: The guess of controls.
    """

    def __init__(self, record: dict[str, Any]):
        names = {name for node in record["nodes"] for name in node.get("contacts", node.get("impulses", []))}
        feet = {name: (name, np.zeros(3)) for name in sorted(names)}  # Crocoddyl's contacts are the origins of frames
        with tempfile.TemporaryDirectory() as folder:
            path = with_joints(record["urdf"], record["joints"], Path(folder))
            robot = without_friction(legged.load(path, feet=feet))
        armatures = zip(record["joints"], record["armature"], strict=True)
        values = robot.parameters()
        twice = [f"{link}.{part}" for link in TWICE for part in ("mass", "tensor") if f"{link}.mass" in values]
        changes: dict[str, Any] = {name: 2.0 * np.asarray(values[name]) for name in twice}
        changes |= {f"{name}.armature": x for name, x in armatures}
        self.record, self.robot = record, robot.with_parameters(changes)
        names = [joint.name for joint in self.robot.joints]
        self.order = [record["joints"].index(joint) for joint in names]
        *nodes, last = record["nodes"]
        surface = any("rotation" in cost for node in nodes for cost in node["costs"].values())
        (gain,) = {gain for node in nodes for gain in node.get("gains", [])}
        made = []
        for node in nodes:
            contacts = [oc.Contact(c, surface) for c in node.get("contacts", node.get("impulses", []))]
            its = self.terms(node)
            made.append(oc.Impact(contacts, its) if "impulses" in node else oc.Stage(node["duration"], contacts, its))
        ignored = ("Cone", "ctrlReg")
        last["costs"] = {key: cost for key, cost in last["costs"].items() if not key.endswith(ignored)}
        self.q0 = self.configuration(record["q0"])
        self.problem = oc.Problem(self.robot, made, self.terms(last), q=self.q0, velocity_gain=gain)
        nu = self.problem.nu
        self.controls = np.array([np.array(u)[self.order] if u else np.zeros(nu) for u in record["us"]])

    def configuration(self, x: Any) -> Any:
        """Return our configuration of Pinocchio's."""
        x = np.array(x)
        return np.concatenate([x[[6, 3, 4, 5]], x[:3], x[7:][self.order]])

    def velocity(self, x: Any) -> Any:
        """Return our velocity, or weights of one, of Pinocchio's."""
        x = np.array(x)
        return np.concatenate([x[3:6], x[:3], x[6:][self.order]])

    def terms(self, node: dict[str, Any]) -> list[oc.Term]:
        """Return the costs of a node."""
        nq, nv, costs = self.robot.nq, self.robot.nv, list[oc.Term]()
        for name, cost in node["costs"].items():
            weight, reference = cost["weight"], cost.get("reference")
            if name == "ctrlReg":
                costs.append(oc.Cost(terms.control, weight))
            elif name == "stateReg":
                square = np.array(cost["weights"])
                w = weight * np.concatenate([self.velocity(square[:nv]), self.velocity(square[nv:])])
                q, v = self.configuration(reference[:nq]), self.velocity(reference[nq:])
                costs.append(oc.Cost(deviation if "impulses" in node else terms.state, w, q=q, v=v))
            elif name == "stateBounds":
                lower, upper = np.array(cost["lower"]), np.array(cost["upper"])
                limits = {"lower": lower[6:nv][self.order], "upper": upper[6:nv][self.order]}
                costs.append(oc.Cost(terms.joint_limits, weight, barrier=True, **limits))
                rates = upper[nv + 6 :][self.order]
                costs.append(oc.Cost(terms.velocity_limits, weight, barrier=True, limit=rates))
            elif name == "comTrack":
                costs.append(oc.Cost(terms.center_of_mass, weight, position=reference))
            elif "rotation" in cost:
                target = {"rotation": cost["rotation"], "position": reference}
                costs.append(oc.Cost(placement, weight, frame=name.removesuffix("_footTrack"), **target))
            elif name.endswith("footTrack"):
                target = {"frame": name.removesuffix("_footTrack"), "position": reference}
                costs.append(oc.Cost(terms.frame_translation, weight, **target))
            elif name.endswith("Cone"):
                contact = name.removesuffix("_frictionCone").removesuffix("_wrenchCone")
                A, lower, upper = (np.array(cost[key]) for key in ("matrix", "lower", "upper"))
                rows = [(A, -lower, lower > -UNBOUNDED), (-A, upper, upper < UNBOUNDED)]
                matrix = np.concatenate([part[keep] for part, _, keep in rows])
                offset = np.concatenate([part[keep] for _, part, keep in rows])
                cone = wrench_rows if matrix.shape[1] == 6 else cone_rows
                costs.append(oc.Cost(cone, weight, barrier=True, contact=contact, matrix=matrix, offset=offset))
        return costs


def without_friction(robot: legged.Robot) -> legged.Robot:
    """Return the robot without friction of its joints, which Crocoddyl ignores."""
    names = [name for name in robot.parameters() if name.endswith((".damping", ".friction"))]
    return robot.with_parameters(dict.fromkeys(names, 0.0)) if names else robot


def with_joints(urdf: str, joints: list[str], folder: Path) -> Path:
    """Write a URDF without the joints that are not in a list and without the links beyond them, and return its path."""
    tree = ElementTree.parse(urdf)
    root, removed = tree.getroot(), set[str]()
    while True:
        wrong = [
            joint
            for joint in root.findall("joint")
            if (joint.get("type") != "fixed" and joint.get("name") not in joints)
            or joint.find("parent").get("link") in removed  # type: ignore[union-attr]
        ]
        if not wrong:
            break
        for joint in wrong:
            removed.add(joint.find("child").get("link"))  # type: ignore[union-attr,arg-type]
            root.remove(joint)
    for link in [link for link in root.findall("link") if link.get("name") in removed]:
        root.remove(link)
    path = folder / Path(urdf).name
    tree.write(path)
    return path


def iteration_time(ours: Translated, q: Any, v: Any, threads: int, repeats: int) -> float:
    """Return the shortest time of an iteration of one start: of the processor on one thread, else elapsed, [s]."""
    best, clock = np.inf, time.process_time if threads == 1 else time.perf_counter
    ours.problem.set_start(q, v)
    with thread_limit(threads):
        for _ in range(repeats):
            solver = oc.Solver(ours.problem)
            solver.set_guess(q=np.atleast_2d(q)[:, None], v=np.zeros_like(v[..., None, :]), u=ours.controls)
            begin = clock()
            solutions = solver.solve()
            best = min(best, (clock() - begin) / sum(len(solution.log) for solution in solutions))
    return best


def compare(name: str, record: dict[str, Any]) -> None:
    """Print the optimum and the times of a problem."""
    start = time.perf_counter()
    ours = Translated(record)
    solver = oc.Solver(ours.problem)
    solver.set_guess(u=ours.controls)
    solution = solver.solve()[0]
    compilation = time.perf_counter() - start
    one, two = (iteration_time(ours, ours.q0, np.zeros(ours.robot.nv), threads, 20) for threads in (1, 2))
    rng, joints = np.random.default_rng(0), ours.robot.nv - 6
    q, v = np.tile(ours.q0, (STARTS, 1)), np.zeros((STARTS, ours.robot.nv))
    v[:, 6:], q[:, 7:] = 0.1 * rng.normal(size=(STARTS, joints)), q[:, 7:] + 0.02 * rng.normal(size=(STARTS, joints))
    batch_one, batch_two = (iteration_time(ours, q, v, threads, 3) for threads in (1, 2))
    nodes = len(record["nodes"])
    theirs = record["times"]
    print(f"{name}: {nodes} nodes; ready in {compilation:.1f} s")
    print(f"  optimum: ours {solution.cost:.8g} in {len(solution.log)} iterations, Crocoddyl {record['cost']:.8g} in "
          f"{record['iterations']}; relative difference {solution.cost / record['cost'] - 1.0:.1e}")  # fmt: skip
    print(f"  one iteration of one node: ours {1e6 * one / nodes:.1f} us, Crocoddyl "
          f"{1e6 * theirs['iteration']:.1f} us (calc {1e6 * theirs['calc']:.1f}, calcDiff "
          f"{1e6 * theirs['calcDiff']:.1f})")  # fmt: skip
    print(f"  on two threads {1e6 * two / nodes:.1f} us; of {STARTS} starts {1e6 * batch_one / nodes:.1f} us on one, "
          f"{1e6 * batch_two / nodes:.1f} us on two")  # fmt: skip


def main(interpreter: str, *names: str) -> None:
    """Solve the problems with both programs."""
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "record.json"
            script = Path(__file__).with_name("crocoddyl_problems.py")
            subprocess.run([interpreter, str(script), name, str(file)], check=True)
            record = json.loads(file.read_text())
        compare(name, record)


if __name__ == "__main__":
    main(*sys.argv[1:])
