"""Motions of Go2: planned by optimal control, executed on rigid ground by the solver's feedback, and in MuJoCo.

Run `python examples/optimization/acrobatics.py FOLDER MOTION`, where MOTION is one of
`over`, `turn`, `stand`. It writes a page with the replay, FOLDER/MOTION.html. Go2 is that of
example-robot-data. The torque of the motors falls linearly with their speed. The simulations start with an error of the
base's velocity, and MuJoCo, if it is installed, simulates the exported scene.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import legged
from legged import optimization as oc
from legged.rotations import axis_quaternion

Array = np.ndarray
Nodes = list[oc.Stage | oc.Impact]
terms = oc.terms
FRICTION, CONE = 0.7, 0.5  # of the ground, and in plans
STEP = 0.02  # [s]
MARGIN = 0.9  # largest torque in plans relative to that of the motors
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])  # quaternion, w first


class Plan(NamedTuple):
    """A problem with the guess of its configurations, and the obstacles of the scene."""

    problem: oc.Problem
    guess: Array
    obstacles: tuple[tuple[str, Any], ...] = ()


def above_edge(robot: legged.Robot, at: oc.Point, frame: Any, edge: Any, height: Any, margin: Any) -> Array:
    """Return how far a point is above the ground, with a step of a height at x = edge, less a margin, (1,), [m]."""
    p = legged.frame_pose(robot, at.q, frame).position
    return np.array([p[2] - height / (1.0 + np.exp((edge - p[0]) / 0.02)) - margin])


class Quadruped:
    """Go2 with its standing configuration, and the costs of its stages."""

    def __init__(self) -> None:
        path = next(str(f.locate()) for f in files("example-robot-data") or () if f.name == "go2.urdf")
        self.robot = legged.load(path)
        self.feet = oc.feet(self.robot)  # front left, front right, rear left, rear right
        self.joints = np.array([0.0, 0.8, -1.5] * 4)
        self.q = self.placed(self.joints)
        values, names = self.robot.parameters(), [joint.name for joint in self.robot.joints]
        self.effort, self.speed, self.lower, self.upper = (
            np.array([values[f"{name}.{field}"] for name in names]) for field in ("effort", "speed", "lower", "upper")
        )

    def placed(self, joints: Array) -> Array:
        """Return the configuration with a level base and the feet on the ground."""
        q = np.concatenate([UPRIGHT, np.zeros(3), joints])
        q[6] = -min(legged.frame_pose(self.robot, q, foot.frame).position[2] for foot in self.feet)
        return q

    def stage(
        self,
        feet: Sequence[oc.Contact],
        *extra: oc.Term,
        joints: Array | None = None,
        weight: float = 1.0,
        phase: str = "",
    ) -> oc.Stage:
        """Return a stage in which feet stand, with friction cones."""
        costs = [
            oc.Cost(terms.joint_positions, weight, joints=self.joints),
            oc.Cost(terms.velocity, np.array([0.1] * 6 + [0.02] * 12)),
            oc.Cost(terms.control, 2e-3),
            oc.Cost(terms.motor_limits, 50.0, barrier=True, effort=MARGIN * self.effort, speed=self.speed),
            oc.Cost(terms.joint_limits, 1e3, barrier=True, lower=self.lower + 0.05, upper=self.upper - 0.05),
        ]
        costs += [oc.Cost(terms.friction_cone, 1.0, barrier=True, contact=f.name, friction=CONE) for f in feet]
        return oc.Stage(STEP, feet, [*costs, *extra], phase)

    def flying(self, count: int, turn: Callable[[float], Array], weight: float, step: tuple[float, float]) -> Nodes:
        """Return stages without contacts: the base follows an orientation, the feet pass a step (place, height)."""
        edge, height = step
        stages = list[oc.Stage | oc.Impact]()
        for k in range(count):
            rotation = oc.Cost(terms.base_rotation, weight, quaternion=turn((k + 0.5) / count))
            margin = 0.03 if 2 < k < count - 2 else 0.0
            numbers = {"edge": edge, "height": height, "margin": margin}
            above = [oc.Cost(above_edge, 1e4, barrier=True, frame=f.frame, **numbers) for f in self.feet]
            stages.append(self.stage([], rotation, *above, weight=2.0, phase="flight"))
        return stages

    def landed(self, feet: Sequence[oc.Contact], q: Array, count: int, height: float = 0.0) -> Nodes:
        """Return an impact of feet on the ground at a height, and stages of standing at a configuration."""
        weights, ground = np.array([0.0, 0.0, 1e3]), np.array([0.0, 0.0, height])
        level = [oc.Cost(terms.frame_translation, weights, frame=f.frame, position=ground) for f in feet]
        rotation = oc.Cost(terms.base_rotation, 20.0, quaternion=q[:4])
        place = oc.Cost(terms.base_position, 50.0, position=q[4:7])
        return [oc.Impact(feet, level), *[self.stage(feet, rotation, place)] * count]

    def problem(self, nodes: Nodes, end: Array, start: Array | None = None) -> oc.Problem:
        """Return the problem that ends in standing still at a configuration."""
        final = [oc.Cost(terms.state, np.array([100.0] * 6 + [10.0] * 12 + [1.0] * 18), q=end, v=np.zeros(18))]
        limit, q = MARGIN * self.effort, self.q if start is None else start
        factors = (0.8, 1.6)
        return oc.Problem(
            self.robot, nodes, final, q=q, lower=-limit, upper=limit, velocity_gain=20.0, duration_factors=factors
        )


def leap(
    dog: Quadruped, end: Array, turn: Callable[[float], Array], *, push: int = 20, flight: int = 15, high: float = 0.3,
    weight: float = 20.0, rear: int = 0, edge: float = 0.0,
) -> tuple[oc.Problem, Array]:  # fmt: skip
    """Return a jump to a configuration that turns during the flight; in `rear` stages only the rear feet push."""
    height = end[6] - dog.q[6]
    nodes: Nodes = [*[dog.stage(dog.feet)] * push, *[dog.stage(dog.feet[2:])] * rear]
    nodes += [*dog.flying(flight, turn, weight, (edge, height)), *dog.landed(dog.feet, end, 30, height)]
    guess = np.tile(dog.q, (len(nodes) + 1, 1))
    share = np.clip((np.arange(len(guess)) - push - rear) / flight, 0.0, 1.0)
    guess[:, 4:7] += share[:, None] * (end[4:7] - dog.q[4:7]) + high * np.sin(np.pi * share)[:, None] * [0.0, 0.0, 1.0]
    guess[:, :4] = [turn(x) for x in share]
    return dog.problem(nodes, end), guess


def moved(dog: Quadruped, x: float, z: float = 0.0, quaternion: Array = UPRIGHT) -> Array:
    """Return the standing configuration at another place."""
    return np.concatenate([quaternion, dog.q[4:7] + np.array([x, 0.0, z]), dog.joints])


def over(dog: Quadruped) -> Plan:
    """Return a jump over 0.5 m."""
    return Plan(*leap(dog, moved(dog, 0.5), lambda s: UPRIGHT))


def turn(dog: Quadruped) -> Plan:
    """Return a jump with a turn by 90 degrees."""
    angle = np.pi / 2
    end = moved(dog, 0.0, 0.0, axis_quaternion("z", angle))
    return Plan(*leap(dog, end, lambda s: axis_quaternion("z", angle * s), flight=16))


def stand(dog: Quadruped) -> Plan:
    """Return standing up from lying with folded legs, the belly 2 cm above the ground."""
    folded = np.array([0.0, 1.3, -2.65] * 4)
    start = dog.placed(folded)
    rise = oc.Cost(terms.base_position, 50.0, position=dog.q[4:7])
    level = oc.Cost(terms.base_rotation, 20.0, quaternion=UPRIGHT)
    nodes: Nodes = [dog.stage(dog.feet, rise, level) for _ in range(50)]
    share = np.clip(np.arange(51) / 25, 0.0, 1.0)[:, None]
    return Plan(dog.problem(nodes, dog.q, start), (1.0 - share) * start + share * dog.q)


MOTIONS = {"over": over, "turn": turn, "stand": stand}


def in_mujoco(robot: legged.Robot, law: oc.Tracking, ground: legged.Rigid, until: float, q: Array, v: Array) -> Array:
    """Return the configurations of the exported scene in MuJoCo, (T, nq), every 2 ms."""
    mujoco: Any = import_module("mujoco")
    with tempfile.TemporaryDirectory() as folder:
        path = legged.save_mjcf(robot, Path(folder) / "scene.xml", scene=True, ground=ground, time_step=0.002)
        model = mujoco.MjModel.from_xml_path(str(path))
    nothing = np.zeros(0)
    data, to = mujoco.MjData(model), legged.conversions.mujoco(robot, model)
    data.qpos[:], data.qvel[:] = to.to_configuration(q), to.to_velocity(q, v)

    def torque_of(robot: legged.Robot, t: Any, q: Array, v: Array) -> Any:
        return law.torque(t, 0, q, v, nothing, nothing)

    torque: Any = legged.compile(torque_of, robot, t=())
    motion = list[Array]()
    for _ in range(round(until / 0.002)):
        q = to.from_configuration(data.qpos)
        motion.append(q)
        tau = torque(data.time, q, to.from_velocity(data.qpos, data.qvel))
        data.qfrc_applied[:] = to.to_force(q, np.concatenate([np.zeros(6), tau]))
        mujoco.mj_step(model, data)
    return np.array(motion)


def described(q: Array) -> str:
    """Return the pose of the base in words."""
    tilt = np.degrees(2.0 * np.arccos(min(1.0, np.hypot(q[0], q[3]))))
    heading = np.degrees(2.0 * np.arctan2(q[3], q[0]))
    heading = (heading + 180.0) % 360.0 - 180.0
    place = [round(float(x), 2) + 0.0 for x in q[4:7]]  # without negative zeros
    return f"base at {place} m, heading {heading:.0f} degrees, tilt {tilt:.0f} degrees"


def main(folder: str = ".", name: str = "over") -> Any:
    """Plan and execute a motion, and return the run; the page of the replay is written to a folder."""
    dog = Quadruped()
    plan = MOTIONS[name](dog)
    solution = oc.solve(plan.problem, q=plan.guess, iterations=300, tolerance=1e-5)
    print(f"{solution}; durations {solution.duration_factors}")
    print(f"peak torque {np.abs(solution.u).max():.1f} N m, highest base {solution.q[:, 6].max():.2f} m")
    law, until = oc.Tracking(plan.problem, solution), float(solution.t[-1]) + 0.5
    ground = legged.Rigid(friction=FRICTION, obstacles=plan.obstacles)
    q, v = solution.q[0], np.array([0.1, 0.1, 0.0, 0.05, 0.05, 0.0] + [0.0] * 12)  # disturbed start
    run = legged.simulate(
        dog.robot,
        law,
        ground=ground,
        integrator=legged.TimeStepping(0.002),
        until=until,
        sample=0.01,
        fall=False,
        q=q,
        v=v,
    )
    print(f"planned end:   {described(solution.q[-1])}")
    print(f"in simulation: {described(run.q[-1])}")
    try:
        print(f"in MuJoCo:     {described(in_mujoco(dog.robot, law, ground, until, q, v)[-1])}")
    except ImportError:
        print("MuJoCo is not installed: pip install 'legged[mujoco]'")
    run.save_html(Path(folder) / f"{name}.html")
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
