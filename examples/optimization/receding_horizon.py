"""A trot of Go2 by receding-horizon control of the whole body: one iteration of the solver every 10 ms.

Run `python examples/optimization/receding_horizon.py FOLDER`. It writes a page with the replay, FOLDER/trot.html, and
prints the processor time of an evaluation of the controller. Between evaluations the feedback of the
solver acts every 2 ms. Go2 is that of example-robot-data; a push of 6 N s disturbs it.
"""

import sys
import time
from importlib.metadata import files
from pathlib import Path

import numpy as np

import legged
from legged import optimization as oc

Array = np.ndarray
terms = oc.terms
FRICTION = 0.7
NODE, NODES, STEP = 0.01, 40, 0.002  # [s], number of nodes, [s]
SWING, SPEED, CLEARANCE = 0.25, 0.4, 0.06  # duration of a step [s], [m/s], [m]
UNTIL = 4.0  # [s]
PAIRS = ((0, 3), (1, 2))  # feet that stand together


class Trot:
    """The stages of a trot at constant speed.

    Attributes:
        robot: Go2. q: Its standing configuration. feet: Its contacts.
    """

    def __init__(self) -> None:
        path = next(str(f.locate()) for f in files("example-robot-data") or () if f.name == "go2.urdf")
        self.robot = legged.load(path)
        self.feet = oc.feet(self.robot)
        self.q = np.concatenate([[1.0, 0.0, 0.0, 0.0], np.zeros(3), [0.0, 0.8, -1.5] * 4])
        places = np.array([legged.frame_pose(self.robot, self.q, foot.frame).position for foot in self.feet])
        self.q[6] = -places[:, 2].min()
        self.places = places + np.array([0.0, 0.0, self.q[6]])
        values = self.robot.parameters()
        self.effort = np.array([values[f"{joint.name}.effort"] for joint in self.robot.joints])
        rates = np.concatenate([[SPEED * (k == 3) for k in range(6)], np.zeros(12)])
        self.rates = rates
        self.weights = np.concatenate([[50.0] * 3, [20.0, 20.0, 100.0], [1.0] * 12, [0.5] * 3, [5.0] * 3, [0.02] * 12])

    def reference(self, t: float) -> Array:
        """Return the reference of the configuration: the standing one, moved at the speed."""
        q = self.q.copy()
        q[4] += SPEED * t
        return q

    def target(self, foot: int, t: float) -> Array:
        """Return the place of a swinging foot: between its last and its next place, in a half sine wave."""
        share = (t % SWING) / SWING
        begin = t - t % SWING
        x = SPEED * (begin - 0.5 * SWING) + share * 2.0 * SWING * SPEED
        return self.places[foot] + np.array([x, 0.0, CLEARANCE * np.sin(np.pi * share)])

    def stage(self, k: int) -> oc.Stage:
        """Return the stage of node k since the start."""
        t = (k + 0.5) * NODE
        pair = PAIRS[int(t / SWING) % 2]
        standing = [self.feet[i] for i in pair]
        costs = [
            oc.Cost(terms.state, self.weights, q=self.reference(t), v=self.rates),
            oc.Cost(terms.control, 1e-3),
            oc.Cost(terms.torque_limits, 1.0, barrier=True, limit=self.effort),
        ]
        costs += [oc.Cost(terms.friction_cone, 0.1, barrier=True, contact=f.name, friction=FRICTION) for f in standing]
        costs += [
            oc.Cost(terms.frame_translation, np.array([500.0, 500.0, 2000.0]), frame=self.feet[i].frame, position=goal)
            for i in range(4)
            if i not in pair
            for goal in [self.target(i, t)]
        ]
        return oc.Stage(NODE, standing, costs)

    def solver(self) -> oc.Solver:
        """Return the solver of the first horizon, solved."""
        nodes = [self.stage(k) for k in range(NODES)]
        solver = oc.Solver(oc.Problem(self.robot, nodes, q=self.q, velocity_gain=30.0))
        solver.set_guess(q=np.array([self.reference(k * NODE) for k in range(NODES + 1)]), v=self.rates)
        solver.solve(20)
        return solver


def command(robot: legged.Robot, plan: oc.Solution, share: float, q: Array, v: Array) -> Array:
    """Return the torques of the first node with its feedback, after a share of its duration."""
    target = legged.integrate(robot, plan.q[0], share * legged.difference(robot, plan.q[0], plan.q[1]))
    rates = (1.0 - share) * plan.v[0] + share * plan.v[1]
    return plan.u[0] + plan.gain[0] @ np.concatenate([legged.difference(robot, target, q), v - rates])


def main(folder: str = ".") -> legged.Run:
    """Trot, and return the run."""
    trot = Trot()
    robot, solver = trot.robot, trot.solver()
    push = legged.Push("base", impulse=(0.0, 6.0, 0.0), at=2.0, duration=0.2)
    sim = legged.Simulation(
        robot,
        ground=legged.Rigid(friction=FRICTION),
        q=trot.q,
        integrator=legged.TimeStepping(STEP),
        pushes=[push],
        fall=False,
    )
    count = round(NODE / STEP)
    times, configurations, spent = list[float](), list[Array](), list[float]()
    for k in range(round(UNTIL / NODE)):
        begin = time.process_time()
        if k:
            solver.advance([trot.stage(k + NODES - 1)], sim.q, sim.v)
        plan = solver.solve(1)[0]
        spent.append(time.process_time() - begin)
        for j in range(count):
            sim.step(command(robot, plan, j / count, sim.q, sim.v))
        times.append(float(sim.t))
        configurations.append(sim.q.copy())
    q = np.array(configurations)
    tilt = np.degrees(2.0 * np.arccos(np.minimum(1.0, np.hypot(q[:, 0], q[:, 3]))))
    print(f"advanced {q[-1, 4]:.2f} m of {SPEED * UNTIL:.2f} m, largest tilt {tilt.max():.0f} degrees")
    print(
        f"{1e3 * np.median(spent):.1f} ms of processor time for an evaluation: {1.0 / np.median(spent):.0f} per second"
    )
    run = legged.Run.from_motion(robot, np.array(times), q)
    run.save_html(Path(folder) / "trot.html")
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
