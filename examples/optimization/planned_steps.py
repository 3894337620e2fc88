"""Go2 steps over a gap, or changes its gait: planned by optimal control, executed under disturbances, and in MuJoCo.

Run `python examples/optimization/planned_steps.py FOLDER MOTION`, where MOTION is `gap`, a trot over a gap of half of
the height of the hips, or `gaits`, a trot that becomes a bound and a trot again. It prints how many of 20 simulations
with errors of masses, friction and states, and with pushes, succeed, and writes a page with the replay,
FOLDER/MOTION.html. The time-varying linear-quadratic regulator about the plan executes it. Go2 is that of
example-robot-data, with the torque-speed curve of Unitree's own simulations (unitree_rl_lab,
UnitreeActuatorCfg_Go2HV): 20.2 N m at a hip up to 13.5 rad/s, and no torque at 30 rad/s.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import legged
from legged import optimization as oc
from legged.contact import Box
from legged.ground import Flat

Array = np.ndarray
Nodes = list[oc.Stage | oc.Impact]
terms = oc.terms
FRICTION, CONE = 0.7, 0.5  # of the ground, and in plans
EFFORT, CORNER = 0.85, 0.45  # torque over that of the URDF, and the speed up to which it is available over no-load
MARGIN = 0.85  # torque and no-load speed in plans relative to those of the motors
STEP, TIME_STEP, SAMPLE, REST = 0.02, 0.002, 0.01, 1.0  # of plans, simulations, records, and after the plan, [s]
DAMPING, CONTROL = np.array([0.1] * 6 + [0.02] * 12), 2e-3  # weights of plans
TRACKING = np.array([200.0] * 6 + [20.0] * 12 + [5.0] * 6 + [0.1] * 12)  # weights of the regulator
DEPTH = 0.3  # of the gap, [m]
TROT, BOUND = [(0, 3), (1, 2)], [(0, 1), (2, 3)]  # feet that swing together
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
TRIALS = 20


class Plan(NamedTuple):
    """A problem, the guess of its configurations, the obstacles of the scene, and the height of its floor."""

    problem: oc.Problem
    q: Array
    obstacles: tuple[tuple[str, Box], ...] = ()
    floor: float = 0.0


class Go2:
    """Go2 with its standing configuration, and the costs of its stages.

    Attributes:
        robot: The robot; simulations apply the law effort (1 - rate / speed) / (1 - CORNER) of its motors.
        feet: Front left, front right, rear left, rear right. q: Standing configuration, (nq,).
        effort, speed, lower, upper: Limits of the joints, (12,), [N m], [rad/s] and [rad].
    """

    def __init__(self) -> None:
        path = next(str(f.locate()) for f in files("example-robot-data") or () if f.name == "go2.urdf")
        robot = legged.load(path)
        names, values = [joint.name for joint in robot.joints], robot.parameters()
        self.effort, self.speed, self.lower, self.upper = (
            np.array([values[f"{name}.{field}"] for name in names]) for field in ("effort", "speed", "lower", "upper")
        )
        self.effort *= EFFORT
        stall = self.effort / (1.0 - CORNER)
        self.robot = robot.with_parameters({f"{name}.effort": x for name, x in zip(names, stall, strict=True)})
        self.feet = oc.feet(self.robot)
        self.q = np.concatenate([UPRIGHT, np.zeros(3), [0.0, 0.8, -1.5] * 4])
        self.q[6] = -self.places()[:, 2].min()

    def places(self) -> Array:
        """Return the places of the feet of the standing robot, (4, 3), [m], world axes."""
        return np.array([legged.frame_pose(self.robot, self.q, foot.frame).position for foot in self.feet])

    def moved(self, x: float) -> Array:
        """Return the standing configuration, moved forward."""
        q = self.q.copy()
        q[4] += x
        return q

    def stage(self, feet: Sequence[oc.Contact], base: float, *extra: oc.Term) -> oc.Stage:
        """Return a stage in which feet stand and the base is level at a place x."""
        slope, limit = MARGIN * self.effort / (1.0 - CORNER), MARGIN * self.effort
        height = np.array([20.0, 20.0, 100.0])
        costs = [
            oc.Cost(terms.joint_positions, 1.0, joints=self.q[7:]),
            oc.Cost(terms.velocity, DAMPING),
            oc.Cost(terms.control, CONTROL),
            oc.Cost(terms.motor_limits, 50.0, barrier=True, effort=slope, speed=MARGIN * self.speed),
            oc.Cost(terms.torque_limits, 50.0, barrier=True, limit=limit),
            oc.Cost(terms.joint_limits, 1e3, barrier=True, lower=self.lower + 0.05, upper=self.upper - 0.05),
            oc.Cost(terms.base_rotation, 50.0, quaternion=UPRIGHT),
            oc.Cost(terms.base_position, height, position=self.moved(base)[4:7]),
        ]
        costs += [oc.Cost(terms.friction_cone, 1.0, barrier=True, contact=f.name, friction=CONE) for f in feet]
        return oc.Stage(STEP, feet, [*costs, *extra])


def steps(dog: Go2, swings: Sequence[tuple[int, ...]], length: float, count: int, rise: float = 0.05) -> Plan:
    """Return a walk in which groups of feet swing by a length, one group after the other, each in `count` stages."""
    places, swinging, landing = dog.places(), np.array([300.0, 300.0, 500.0]), np.array([500.0, 500.0, 1e3])
    base, path = 0.0, [0.0] * 10
    nodes: Nodes = [dog.stage(dog.feet, 0.0)] * 10
    for swing in swings:
        start, after = places.copy(), base + length * len(swing) / len(places)
        places[list(swing), 0] += length
        standing = [foot for i, foot in enumerate(dog.feet) if i not in swing]
        for k in range(count):
            s = (k + 0.5) / count
            goals = (1.0 - s) * start + s * places + np.array([0.0, 0.0, rise * np.sin(np.pi * s)])
            x = base + s * (after - base)
            targets = [
                oc.Cost(terms.frame_translation, swinging, frame=dog.feet[i].frame, position=goals[i]) for i in swing
            ]
            nodes.append(dog.stage(standing, x, *targets))
            path.append(x)
        ends = [oc.Cost(terms.frame_translation, landing, frame=dog.feet[i].frame, position=places[i]) for i in swing]
        nodes.append(oc.Impact(dog.feet, ends))
        base = after
        path.append(base)
    nodes += [dog.stage(dog.feet, base)] * 20
    path += [base] * 21
    weights = np.array([100.0] * 6 + [10.0] * 12 + [1.0] * 18)
    final = [oc.Cost(terms.state, weights, q=dog.moved(base), v=np.zeros(18))]
    problem = oc.Problem(dog.robot, nodes, final, q=dog.q, velocity_gain=20.0, integrator="midpoint")
    return Plan(problem, np.array([dog.moved(x) for x in path]))


def gap(dog: Go2) -> Plan:
    """Return a trot over a gap whose width is half of the height of the hips."""
    x = dog.places()[:, 0]
    length = 0.5 * (x[0] - x[2])  # so that the rear feet tread where the front feet did
    width, middle = 0.5 * dog.q[6], x[0] + 0.5 * length
    boxes = [
        (name, Box((2.0, 1.0, DEPTH), (middle + side * (1.0 + 0.5 * width), 0.0, -0.5 * DEPTH)))
        for name, side in (("near", -1.0), ("far", 1.0))
    ]
    return steps(dog, TROT * 4, length, 9)._replace(obstacles=tuple(boxes), floor=-DEPTH)


def gaits(dog: Go2) -> Plan:
    """Return a trot that becomes a bound and then a trot again."""
    return steps(dog, [*TROT, *TROT, *BOUND, *BOUND, *TROT], 0.12, 7)


def regulated(dog: Go2, problem: oc.Problem, solution: oc.Solution) -> oc.Solution:
    """Return the solution with the gains of the linear-quadratic regulator about it.

    They are those of a problem whose costs are the deviations from the solution, which is its own optimum.
    """
    durations, nodes = np.diff(solution.t), Nodes()
    for k, node in enumerate(problem.nodes):
        state = oc.Cost(terms.state, TRACKING, q=solution.q[k], v=solution.v[k])
        control = oc.Cost(terms.control, CONTROL, reference=solution.u[k])
        is_stage = isinstance(node, oc.Stage)
        contacts = node.contacts
        nodes.append(oc.Stage(durations[k], contacts, [state, control]) if is_stage else oc.Impact(contacts))
    last = oc.Cost(terms.state, TRACKING, q=solution.q[-1], v=solution.v[-1])
    tracked = oc.Problem(dog.robot, nodes, [last], q=solution.q[0], velocity_gain=20.0, integrator="midpoint")
    found = oc.solve(tracked, q=solution.q, v=solution.v, u=solution.u, iterations=3)
    return replace(solution, gain=found.gain)


class Execution:
    """A plan with its solution and its controller.

    Attributes:
        dog: The robot. plan: The problem. solution: Its solution. law: The controller. until: End, [s].
        ground: The ground with the obstacles of the plan.
    """

    def __init__(self, dog: Go2, plan: Plan, solution: oc.Solution):
        self.dog, self.plan, self.solution = dog, plan, solution
        gains = regulated(dog, plan.problem, solution)
        self.law = oc.Tracking(plan.problem, gains, lower=-dog.effort, upper=dog.effort)
        self.until = float(solution.t[-1]) + REST
        self.ground = legged.Rigid(friction=FRICTION, terrain=Flat(plan.floor), obstacles=plan.obstacles)

    def run(self) -> legged.Run:
        """Return the undisturbed simulation."""
        return legged.simulate(
            self.dog.robot,
            self.law,
            ground=self.ground,
            integrator=legged.TimeStepping(TIME_STEP),
            until=self.until,
            sample=SAMPLE,
            fall=False,
        )

    def trials(self, count: int, seed: int = 0) -> int:
        """Return how many of many disturbed simulations succeed.

        The mass of the base changes by 5 % of the robot's, the friction from 0.55 to 0.85, the robot begins with errors
        of joints of 0.02 rad and of velocities of 0.05 rad/s and 0.05 m/s, and a push with an impulse of 0.1 m/s times
        its mass acts in the first half of the plan; the numbers are bounds, from which values are drawn uniformly.
        """
        robot, random = self.dog.robot, np.random.default_rng(seed)
        mass, nv = robot.mass, robot.nv
        joints = np.arange(nv) >= 6

        def uniform(*shape: int) -> Array:
            return random.uniform(-1.0, 1.0, (count, *shape))

        runs = legged.rollout(
            robot,
            self.law,
            ground=self.ground,
            until=self.until,
            q=np.array([legged.integrate(robot, self.dog.q, dq) for dq in 0.02 * joints * uniform(nv)]),
            v=0.05 * ~joints * uniform(nv),
            integrator=legged.TimeStepping(TIME_STEP),
            sample=SAMPLE,
            fall=False,
            pushes=[legged.Push("base", (0.0, 0.0, 0.0), at=0.0, duration=0.05)],
            vary={
                "robot.base.mass": robot.parameters()["base.mass"] + 0.05 * mass * uniform(),
                "ground.friction": FRICTION + 0.15 * uniform(),
                "pushes.0.at": 0.5 * self.solution.t[-1] * (0.5 + 0.5 * uniform()),
                "pushes.0.impulse": 0.1 * mass / np.sqrt(3.0) * uniform(3),
            },
        )
        return sum(self.succeeds(runs.q[i]) for i in range(count))

    def succeeds(self, q: Array) -> bool:
        """Return whether a motion, (T, nq), ends at rest near the end of the plan, without links in the floor."""
        robot = self.dog.robot
        if not np.isfinite(q).all():
            return False
        error = legged.difference(robot, self.solution.q[-1], q[-1])
        moved = legged.difference(robot, q[-11], q[-1])
        is_near = np.linalg.norm(error[:2]) < 0.2 and np.linalg.norm(error[3:6]) < 0.25
        return bool(is_near and np.abs(moved).max() < 0.02 and legged.compile(link_heights, robot)(q).min() > -0.005)

    def in_mujoco(self) -> Array:
        """Return the configurations of the exported scene in MuJoCo, (T, nq), every `SAMPLE`."""
        mujoco: Any = import_module("mujoco")
        robot, law, nothing = self.dog.robot, self.law, np.zeros(0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.xml"
            legged.save_mjcf(robot, path, scene=True, ground=self.ground, time_step=TIME_STEP)
            model = mujoco.MjModel.from_xml_path(str(path))
        data, to = mujoco.MjData(model), legged.conversions.mujoco(robot, model)
        data.qpos[:] = to.to_configuration(self.solution.q[0])
        stall = self.dog.effort / (1.0 - CORNER)

        def torque_of(robot: legged.Robot, t: Any, q: Array, v: Array) -> Any:
            return law.torque(t, 0, q, v, nothing, nothing)

        torque: Any = legged.compile(torque_of, robot, t=())
        motion = list[Array]()
        for k in range(round(self.until / TIME_STEP) + 1):
            q = to.from_configuration(data.qpos)
            if k % round(SAMPLE / TIME_STEP) == 0:
                motion.append(q)
            v = to.from_velocity(data.qpos, data.qvel)
            rates = v[6:] / self.dog.speed
            least, most = -stall * np.clip(1.0 + rates, 0.0, 1.0), stall * np.clip(1.0 - rates, 0.0, 1.0)
            tau = np.clip(torque(data.time, q, v), least, most)
            data.qfrc_applied[:] = to.to_force(q, np.concatenate([np.zeros(6), tau]))
            mujoco.mj_step(model, data)
        return np.array(motion)


def link_heights(robot: legged.Robot, q: Array) -> Array:
    """Return the heights of the origins of all links, (links,), [m]."""
    return np.array([legged.frame_pose(robot, q, link.name).position[2] for link in robot.links])


def main(folder: str = ".", name: str = "gap") -> legged.Run:
    """Plan and execute a motion, and return the run; the page of the replay is written to a folder."""
    dog = Go2()
    plan = {"gap": gap, "gaits": gaits}[name](dog)
    solution = oc.solve(plan.problem, q=plan.q, iterations=300, tolerance=1e-4)
    print(f"{solution}; peak torque {np.abs(solution.u).max():.1f} N m")
    execution = Execution(dog, plan, solution)
    run = execution.run()
    advanced = f"{run.q[-1][4]:.2f} m of {solution.q[-1, 4]:.2f} m"
    print(f"in simulation: advanced {advanced}: {'success' if execution.succeeds(run.q) else 'failure'}", flush=True)
    run.save_html(Path(folder) / f"{name}.html")
    try:
        print(f"in MuJoCo: {'success' if execution.succeeds(execution.in_mujoco()) else 'failure'}", flush=True)
    except ImportError:
        print("MuJoCo is not installed: pip install 'legged[mujoco]'")
    print(f"disturbed: {execution.trials(TRIALS)} of {TRIALS} simulations succeed")
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
