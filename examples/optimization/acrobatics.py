"""A jump of a quadruped over 0.5 m: planned by optimal control, executed on rigid ground by the solver's feedback.

Run `python examples/optimization/acrobatics.py FOLDER go2.urdf`. Without a file it uses Go2 of example-robot-data. It
writes a page with the replay, FOLDER/jump.html. The torque of the motors falls linearly with their speed.
"""

import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np

import legged
from legged import optimization as oc

Array = np.ndarray
FRICTION = 0.7
STEP = 0.02  # [s]
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])  # quaternion, w first


def posture(robot: legged.Robot, at: oc.Point, joints: Array) -> Array:
    """Return the deviation of the joints from a posture."""
    return at.q[7:] - joints


def rates(robot: legged.Robot, at: oc.Point) -> Array:
    """Return all velocities."""
    return at.v


def base_position(robot: legged.Robot, at: oc.Point, position: Array) -> Array:
    """Return the deviation of the base's position."""
    return at.q[4:7] - position


class Quadruped:
    """A robot with its standing configuration, and the costs of its stages."""

    def __init__(self, path: Path):
        self.robot = legged.load(path)
        links = self.robot.links
        frames = [legged.Frame(links[point.link].name, point.position) for point in self.robot.contacts]
        # The links of the feet have the names of their contact points: a name alone would mean the origin of the link.
        self.feet = [oc.Contact(frame, name=frame.on) for frame in frames]
        self.joints = np.array([0.0, 0.8, -1.5] * 4)
        self.q = np.concatenate([UPRIGHT, np.zeros(3), self.joints])
        self.q[6] = -min(legged.frame_pose(self.robot, self.q, foot.frame).position[2] for foot in self.feet)
        values = self.robot.parameters()
        names = [joint.name for joint in self.robot.joints]
        self.effort, self.speed, self.lower, self.upper = (
            np.array([values[f"{name}.{field}"] for name in names]) for field in ("effort", "speed", "lower", "upper")
        )

    def stage(self, feet: list[oc.Contact], *extra: oc.Term, posture_weight: float = 1.0) -> oc.Stage:
        """Return a stage in which feet stand, with friction cones."""
        terms = [
            oc.Cost(posture, posture_weight, joints=self.joints),
            oc.Cost(rates, np.array([0.1] * 6 + [0.02] * 12)),
            oc.Cost(oc.terms.control, 2e-3),
            oc.Cost(oc.terms.motor_limits, 50.0, barrier=True, effort=0.95 * self.effort, speed=self.speed),
            oc.Cost(oc.terms.joint_limits, 1e3, barrier=True, lower=self.lower + 0.05, upper=self.upper - 0.05),
        ]
        terms += [oc.Cost(oc.terms.friction_cone, 1.0, barrier=True, contact=f.name, friction=FRICTION) for f in feet]
        return oc.Stage(STEP, feet, [*terms, *extra])

    def air(self) -> oc.Stage:
        """Return a stage without contacts, with a level base and the feet above the ground."""
        free = [oc.Cost(oc.terms.clearance, 1e3, barrier=True, frame=f.frame, height=0.02) for f in self.feet]
        upright = oc.Cost(oc.terms.base_rotation, 20.0, quaternion=UPRIGHT)
        return self.stage([], upright, *free, posture_weight=2.0)

    def landed(self, place: Array, count: int) -> list[oc.Stage | oc.Impact]:
        """Return an impact of all feet on the ground, and stages of standing with the base at a place."""
        weights, ground = np.array([0.0, 0.0, 1e3]), np.zeros(3)
        level = [oc.Cost(oc.terms.frame_translation, weights, frame=f.frame, position=ground) for f in self.feet]
        upright = oc.Cost(oc.terms.base_rotation, 20.0, quaternion=UPRIGHT)
        stand = self.stage(self.feet, upright, oc.Cost(base_position, 50.0, position=place))
        return [oc.Impact(self.feet, level), *[stand] * count]

    def problem(self, nodes: list[oc.Stage | oc.Impact], place: Array) -> oc.Problem:
        """Return the problem that ends in standing still with the base at a place."""
        q = self.q.copy()
        q[4:7] = place
        final = [oc.Cost(oc.terms.state, np.array([100.0] * 6 + [10.0] * 12 + [1.0] * 18), q=q, v=np.zeros(18))]
        limit = 0.95 * self.effort
        return oc.Problem(self.robot, nodes, final, q=self.q, lower=-limit, upper=limit, velocity_gain=20.0)


def jump(dog: Quadruped) -> tuple[oc.Problem, Array]:
    """Return the problem of a jump over 0.5 m, and a guess of its configurations."""
    place = dog.q[4:7] + np.array([0.5, 0.0, 0.0])
    push, flight = 20, 15
    nodes = [*[dog.stage(dog.feet)] * push, *[dog.air()] * flight, *dog.landed(place, 25)]
    q = np.tile(dog.q, (len(nodes) + 1, 1))
    share = np.clip((np.arange(len(q)) - push) / flight, 0.0, 1.0)
    q[:, 4:7] += share[:, None] * (place - dog.q[4:7]) + 0.3 * np.sin(np.pi * share)[:, None] * [0.0, 0.0, 1.0]
    return dog.problem(nodes, place), q


def main(folder: str = ".", path: str | None = None) -> Any:
    """Plan and execute the jump, and return the run; the page of the replay is written to a folder."""
    if path is None:
        path = next(str(f.locate()) for f in files("example-robot-data") or () if f.name == "go2.urdf")
    dog = Quadruped(Path(path))
    problem, guess = jump(dog)
    solution = oc.solve(problem, q=guess, iterations=300, tolerance=1e-5)
    print(solution)
    print(f"peak torque {np.abs(solution.u).max():.1f} N m, highest base {solution.q[:, 6].max():.2f} m")
    run = legged.simulate(
        dog.robot,
        oc.Tracking(problem, solution),
        ground=legged.Rigid(friction=FRICTION),
        integrator=legged.TimeStepping(0.002),
        until=float(solution.t[-1]) + 0.5,
        sample=0.01,
        fall=False,
    )
    end = [round(float(x), 2) + 0.0 for x in run.q[-1, :7]]  # without negative zeros
    print(f"at the end: base at {end[4:]} m, quaternion {end[:4]}")
    run.save_html(Path(folder) / "jump.html")
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
