"""The command `python -m benchmarks.environments.learning`: train a policy, and measure it here and in MuJoCo.

    python -m benchmarks.environments.learning go2.urdf --steps 17000000 --threads 1 --out results/go2
    python -m benchmarks.environments.learning g1.urdf --task rough --minutes 12 --threads 1 --out results/g1

A training to a number of transitions gives the same policy on each computer of one kind, whatever else runs on it.
It prints the wall time of environment, policy and learner, and how well the policy follows commanded velocities: as
trained, with a delay of 10 ms and 20 % more mass, and in MuJoCo on the scene of `legged.save_mjcf`; the part of robots
that survive pushes; and the time and the operations of the policy as C in a loop at 500 Hz.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
from legged.environments import TASKS, Range, Task, make
from legged.environments.tasks.common import Stance
from legged.ground import Flat
from legged.learning.evaluation import COMMANDS, Tracking, heading_velocities, survival, tracking
from legged.learning.ppo import Settings
from legged.learning.training import CHECKPOINT, Training, progress
from legged.table import Table

Array = np.ndarray
_LOOP = """
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "policy.h"
static double memory[{memory}], next[{memory}], torques[{nj}];
int main(void) {{
    double t = 0.0, q[{nq}] = {{{q}}}, v[{nv}] = {{0.0}}, command[{nc}] = {{0.5}}, sum = 0.0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int k = 0; k < {steps}; ++k) {{
        t = 0.002 * k;
        q[7] += 1e-6;
        if (policy(&t, q, v, memory, command, next, torques)) return 1;
        memcpy(memory, next, sizeof memory);
        sum += torques[0];
    }}
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.9f %.17g\\n", ((b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec)) / {steps}, sum);
    return 0;
}}
"""


def harder(task: Task) -> Task:
    """Return the task with a delay of 10 ms and 20 % more mass of the base."""
    base = f"{task.robot.links[0].name}.mass"
    return replace(
        task,
        variations={**task.variations, base: Range(1.2, 1.2, is_factor=True), "servo.delay": Range(0.01, 0.01)},
    )


_MUJOCO_STEP = 1e-3  # [s]


def tracking_in_mujoco(
    task: Task,
    network: controllers.Network,
    duration: float = 6.0,
    delay: float = 0.0,
    mass: float = 1.0,
    robots: int = 1,
    seed: int = 7,
) -> Tracking:
    """Return how a policy follows commands in MuJoCo, without noise, in time steps of 1 ms, from starts of the task.

    MuJoCo takes the stiffness of servos explicitly: in its steps of 5 ms, delayed servos are not stable.

    Args:
        task: The task. network: The policy. duration: Of each run, [s]; means are those after the first 2 s.
        delay: Time after which targets arrive, [s]. mass: Factor of the mass and the inertia of the base.
        robots: Number of robots for each command. seed: Of the starts.
    """
    model = _mujoco_scene(task, mass)
    given = np.repeat(np.asarray(COMMANDS), robots, axis=0)
    starts = make(task, num_envs=len(given), threads=1)
    starts.reset(seed=seed)
    states = zip(given, starts.q, starts.v, strict=True)
    runs = [_run_in_mujoco(model, task, network, *state, duration, delay) for state in states]
    velocities, fallen = zip(*runs, strict=True)
    errors = np.array(velocities) - given
    size = np.stack([np.hypot(errors[:, 0], errors[:, 1]), np.abs(errors[:, 2])], axis=1)
    means = (np.array(x).reshape(len(COMMANDS), robots, -1).mean(axis=1) for x in (velocities, size, fallen))
    moved, error, fell_part = means
    return Tracking(np.asarray(COMMANDS), moved, error, fell_part[:, 0])


def _mujoco_scene(task: Task, mass: float) -> Any:
    """Return the `mujoco.MjModel` of the robot, ground and servos of a task; the mass of its base is scaled."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = legged.save_mjcf(
            task.robot,
            Path(folder) / "scene.xml",
            scene=True,
            ground=task.ground,
            kp=task.kp,
            kd=task.kd,
            time_step=_MUJOCO_STEP,
        )
        model: Any = mujoco.MjModel.from_xml_path(str(path))
    base = int(model.jnt_bodyid[0])
    model.body_mass[base] *= mass
    model.body_inertia[base] *= mass
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _run_in_mujoco(
    model: Any,
    task: Task,
    network: controllers.Network,
    command: Array,
    q: Array,
    v: Array,
    duration: float,
    delay: float,
) -> tuple[Array, float]:
    """Return the mean velocity after 2 s, (3,), [m/s], [m/s], [rad/s], heading axes, and 1.0 if the robot fell, else 0.

    Args:
        model: Result of `_mujoco_scene`. task, network: As in `tracking_in_mujoco`.
        command: Commanded velocity, (3,), [m/s], [m/s], [rad/s], heading axes.
        q, v: Start, (nq,) and (nv,), mixed units. duration, delay: As in `tracking_in_mujoco`, [s].
    """
    import mujoco

    data: Any = mujoco.MjData(model)
    terrain, to, nj = task.ground.terrain, legged.conversions.mujoco(task.robot, model), task.robot.nj
    bent = task.robot.neutral()
    bent[-nj:] = np.arange(1.0, nj + 1.0) * 0.01
    order = np.rint(100.0 * to.to_configuration(bent)[7:]).astype(int) - 1  # number in q of each joint of MuJoCo
    data.qpos[:], data.qvel[:] = to.to_configuration(q), to.to_velocity(q, v)
    action, last, target, total, count, fell = np.zeros(nj), np.zeros(nj), task.posture, np.zeros(3), 0, False
    memory = task.actor_memory
    for step in range(round(duration / task.period)):
        q, v = to.from_configuration(data.qpos), to.from_velocity(data.qpos, data.qvel)
        sensed = (q, v, action, last, command, step)
        memory = task.remembered(*sensed, memory) if step else memory
        chosen = network(task.observed(*sensed, memory))[0]
        action, last, previous = chosen, action, target
        target = task.targets(chosen)
        for k in range(round(task.period / _MUJOCO_STEP)):
            data.ctrl[:] = (previous if k * _MUJOCO_STEP < delay - 1e-9 else target)[order]
            mujoco.mj_step(model, data)
        height = data.qpos[2] - float(terrain.height(data.qpos[0], data.qpos[1]))
        fell |= bool(height < 0.4 * task.height)
        if step * task.period >= 2.0:
            q, v = to.from_configuration(data.qpos), to.from_velocity(data.qpos, data.qvel)
            total, count = total + heading_velocities(q[None], v[None])[0], count + 1
    return total / count, float(fell)


def time_as_c(task: Task, network: controllers.Network, steps: int = 50_000) -> Table:
    """Return the time and the operations of a call of the policy as C, at 500 Hz with an action in each tenth call.

    Args:
        task: The task. network: The policy. steps: Number of calls.
    """
    robot = task.robot
    law = controllers.Policy(network, task)
    counts = legged.count(lambda observed: network(observed)[0], observed=(network.observed,))
    sizes = {
        "memory": 2 * robot.nj + len(task.actor_memory) + network.memory,
        "nj": robot.nj,
        "nq": robot.nq,
        "nv": robot.nv,
    }
    q = ", ".join(f"{x:.17g}" for x in law.initial_state(robot)[0])
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "loop.c", Path(folder) / "loop"
        own, _ = law.to_c(robot, Path(folder) / "policy")
        source.write_text(_LOOP.format(**sizes, q=q, nc=task.command_size, steps=steps))
        flags = ["-O2", "-Wall", "-Werror", "-std=gnu99"]
        subprocess.run(["gcc", *flags, "-o", program, source, own, "-lm"], check=True)
        seconds = float(subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()[0])
        lines = len(own.read_text().splitlines())
    rows = (
        ("time of a call", f"{1e6 * seconds:.1f} us, {100.0 * seconds / 0.002:.2f} % of 2 ms"),
        ("operations of the network", f"{counts.total}"),
        ("lines of C", f"{lines}"),
    )
    return Table("Policy as C99 (gcc -O2), called at 500 Hz", ("", ""), rows)


def measure(
    task: Task, act: Callable[[Array], Array], network: controllers.Network, threads: int | None
) -> Iterator[Table]:
    """Yield the tables of a policy, without that of its training; arguments as in `tracking`."""
    noisy, loaded = "with the variations and noise of the training", "delay of 10 ms, 20 % more mass of the base"
    yield tracking(task, act, threads=threads).table(f"Commanded velocities, {noisy}")
    yield tracking(harder(task), act, threads=threads).table(f"Commanded velocities, {loaded}")
    parts = [
        (f"{push} m/s", f"{100.0 * survival(task, act, push, threads=threads):.1f} %") for push in (0.5, 0.75, 1.0)
    ]
    yield Table("Robots that do not fall within 3 s after a push", ("push", "part"), tuple(parts))
    robots = 1 if isinstance(task.ground.terrain, Flat) else 4
    yield tracking_in_mujoco(task, network, robots=robots).table("In MuJoCo")
    yield tracking_in_mujoco(task, network, delay=0.01, mass=1.2, robots=robots).table(f"In MuJoCo, {loaded}")
    yield time_as_c(task, network)


def main() -> None:
    """Train, or read a checkpoint, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.environments.learning", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("robot", help="URDF of a robot with legs that is symmetric, such as Go2")
    parser.add_argument("--task", choices=("velocity", "rough"), default="velocity")
    parser.add_argument("--minutes", type=float, help="duration of the training; 5 by default, 0 only reads --resume")
    parser.add_argument("--steps", type=int, help="number of transitions, in place of a duration")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--out", type=Path, default=Path("results/learning"))
    parser.add_argument("--resume", type=Path)
    given = parser.parse_args()
    task = TASKS[given.task](legged.load(given.robot))
    is_easy = given.task == "velocity" and len(Stance.of(task.robot).home.legs) > 2
    settings = Settings(mirrored=True, halving=8e6 if is_easy else 2.5e7)
    known = {"num_envs": given.num_envs, "seed": given.seed, "threads": given.threads, "resume": given.resume}
    training = Training(task, given.out, settings=settings, **known)
    minutes = 5.0 if given.minutes is None and given.steps is None else given.minutes
    begin = time.process_time()
    if minutes != 0.0:
        with progress(training, minutes, given.steps) as report:
            training.run(minutes, given.steps, report)
    spent = time.process_time() - begin
    from legged.learning.report import time_table, write_report

    learner = training.learner
    print(time_table(learner).text(), f"processor time of this call: {spent:.0f} s", sep="\n")
    for table in measure(task, learner.act, learner.network(), given.threads):
        print(table.text(), flush=True)
    print(*write_report(training, given.out, given.task), given.out / CHECKPOINT, sep="\n")


if __name__ == "__main__":
    main()
