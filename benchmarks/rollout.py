"""Closed loops by the thousand: a trotting quadruped on compliant ground, beside MuJoCo's steps of the same robot.

    python benchmarks/rollout.py [--members N] [--rounds N]

Ours is the whole closed loop in one kernel: gait, controller, dynamics, contact, judgement of falls and integrator.
MuJoCo steps the same bodies, standing on four contacts with a servo at every joint, which is less control; its loop
over steps is its own, in C. All on one thread, in turns in one run: ratios travel between computers, times do not.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import controllers
import legged
import robots
from legged.ground import realistic_ground
from legged.reports.table import Table
from legged.reports.timing import race

STEP = 1e-3  # [s], of both
STEPS = 100  # of every member in one round
ALONE = 1.0  # [s], simulated of one robot in one round


def laws() -> dict[str, Any]:
    """Return the controllers to time."""
    gait = controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
    return {"computed torque": controllers.ComputedTorque(gait), "balanced": controllers.Balanced(gait)}


def batch(law: Any, members: int) -> Callable[[], Any]:
    """Return `STEPS` steps of a batch whose initial velocities differ; what prepares them is done here, once."""
    from legged.simulation.batch import Batch, BatchLoop
    from legged.simulation.rollout import Task
    from legged.simulation.variation import Setting, Variation

    robot = robots.spatial_quadruped()
    _, v = law.initial_state(robot)
    v = v + np.pad(0.02 * np.random.default_rng(0).standard_normal((members, 6)), ((0, 0), (0, robot.nj)))
    setting = Setting(law, realistic_ground(robot, penetration=5e-3), ())
    variation = Variation.of(setting, {}, {"v": (v, robot.nv)})
    whole = Batch(robot, variation, None, v, legged.Fall(), STEPS * STEP)
    loop = BatchLoop(whole, whole.starts, "semi_implicit")
    task = Task(whole, legged.SemiImplicitEuler(STEP), np.array([0.0, STEPS * STEP]))
    return lambda: task.compiled(loop, 1, lambda t: None)


def alone(law: Any) -> Callable[[], Any]:
    """Return the loop of one robot over `ALONE` seconds, sampled at 100 Hz."""
    from legged.simulation.closed_loop import ClosedLoop
    from legged.simulation.controller import adapt
    from legged.simulation.engine import COMPILED, Engine
    from legged.simulation.system import segments

    robot = robots.spatial_quadruped()
    ground, controller = realistic_ground(robot, penetration=5e-3), adapt(law)
    q, v = law.initial_state(robot)
    loop = ClosedLoop(robot, controller, ground, len(controller.start(robot, ground, q, v)))
    engine, s = Engine(loop, True, COMPILED), loop.initial(v, np.zeros(0))
    plan = segments(np.arange(0.0, ALONE + 1e-9, 0.01), list(controller.switches(ALONE)))
    return lambda: list(legged.SemiImplicitEuler(STEP).march(engine, q, s, plan))


def mujoco_steps() -> Callable[[], Any] | None:
    """Return `STEPS` steps of MuJoCo's quadruped, which stands; None if MuJoCo is not installed."""
    try:
        import mujoco
    except ImportError:
        return None
    model = mujoco.MjModel.from_xml_string(mjcf())
    data = mujoco.MjData(model)
    data.qpos[:] = [0, 0, 0.52, 1, 0, 0, 0, *[0.0, 0.5, -1.0] * 4]
    data.ctrl[:] = [0.0, 0.5, -1.0] * 4
    mujoco.mj_step(model, data, 2000)
    assert data.ncon == 4 and data.qpos[2] > 0.4, "it must stand on its four feet"
    return lambda: mujoco.mj_step(model, data, STEPS)


def mjcf() -> str:
    """Return the paper's quadruped for MuJoCo: a box, eight rods, a free joint, twelve hinges, four spheres as feet."""
    legs, servos = "", ""
    rod = '<inertial pos="0 0 -0.15" mass="1" diaginertia="0.0075 0.0075 1e-5"/>'
    for k, (x, y) in enumerate([(-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25)]):
        legs += f"""
          <body pos="{x} {y} 0">
            <joint name="abduct{k}" axis="1 0 0"/><joint name="swing{k}" axis="0 -1 0"/>{rod}
            <body pos="0 0 -0.3">
              <joint name="knee{k}" axis="0 -1 0"/>{rod}
              <geom type="sphere" size="0.02" pos="0 0 -0.3" mass="0" friction="0.8" contype="2" conaffinity="1"/>
            </body>
          </body>"""
        servos += "".join(f'<position joint="{j}{k}" kp="300" kv="10"/>' for j in ("abduct", "swing", "knee"))
    return f"""
    <mujoco>
      <option timestep="{STEP}"/>
      <worldbody>
        <geom type="plane" size="50 50 1" friction="0.8" contype="1" conaffinity="2"/>
        <body pos="0 0 0.6">
          <freejoint/><inertial pos="0 0 0" mass="4" diaginertia="0.08334 0.33334 0.41667"/>{legs}
        </body>
      </worldbody>
      <actuator>{servos}</actuator>
    </mujoco>"""


def table(members: int, rounds: int) -> Table:
    """Return the steps per second of every way, one thread."""
    known = laws()
    ways: list[Callable[[], Any]] = [batch(law, members) for law in known.values()]
    ways += [alone(law) for law in known.values()]
    theirs = mujoco_steps()
    times = race([*ways, theirs] if theirs else ways, rounds)
    reference = STEPS / times[-1] if theirs else None
    rows = []
    for k, name in enumerate(known):
        rows.append(_row(f"{name}, batch of {members}", members * STEPS / times[k], reference))
    for k, name in enumerate(known):
        rows.append(_row(f"{name}, one robot", ALONE / STEP / times[len(known) + k], reference))
    if reference:
        rows.append(_row("MuJoCo, mj_step", reference, reference))
    header = ("", "steps per second", "over MuJoCo", "times real time")
    notes = (f"Steps of {1e3 * STEP:g} ms of the quadruped with 18 degrees of freedom and four contacts, one thread.",)
    return Table("Closed loop of a quadruped", header, tuple(rows), notes)


def _row(name: str, rate: float, reference: float | None) -> tuple[str, ...]:
    over = f"{rate / reference:.1f}" if reference else "-"
    return name, f"{rate:.3g}", over, f"{rate * STEP:.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time closed loops.")
    parser.add_argument("--members", type=int, default=4096, help="of the batch")
    parser.add_argument("--rounds", type=int, default=5, help="how often every way is timed; the best counts")
    given = parser.parse_args()
    print(table(given.members, given.rounds).text())


if __name__ == "__main__":
    main()
