"""Identification of real and simulated robots: `python -m benchmarks.identification [go2] [recovery] [trot]`.

`go2` needs the log of a real Go2 (`../shared/data/go2-air-log.npz`) and compares with `mujoco.sysid` where it is
installed (`pip install 'mujoco[sysid]'`); the environment variable LEGGED_DATA names another folder.
Times are those of one thread.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import legged
from benchmarks.harness.subjects import robot_file
from legged.identification import Log, Model, Motors, Parameter, excitation, read

DATA = Path(os.environ.get("LEGGED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "go2-air-log.npz"
KP, KD = 20.0, 1.5  # of the log's servos, [N m/rad] and [N m s/rad]
WINDOW = 0.5  # [s]
BOUNDS = {"damping": (0.1, 0.0, 2.0), "armature": (0.01, 0.001, 0.1), "friction": (0.1, 0.0, 2.0)}


def go2(base: str = "fixed") -> legged.Robot:
    """Return the robot of the package example-robot-data."""
    return legged.load(robot_file("go2_description/urdf/go2.urdf"), base=base)


def air_log(robot: legged.Robot) -> Log:
    """Return the log of the real robot, whose times have single precision."""
    channels = {"times": "time", "positions": "q", "desired": "q_desired"}
    log = read(DATA, joints=tuple(joint.name for joint in robot.joints), channels=channels)
    return dataclasses.replace(log, times=0.005 * np.arange(len(log.times)))


def parameters(robot: legged.Robot) -> dict[str, Parameter]:
    """Return damping, armature and dry friction of each joint."""
    return {f"robot.{j.name}.{k}": Parameter(*b) for j in robot.joints for k, b in BOUNDS.items()}


def fit_with_legged(model: Model, log: Log, fitted: list[int], held: list[int]) -> dict[str, Any]:
    """Return the time, values and errors of a fit, compiled before."""
    model.fit(log, window=WINDOW, chosen=fitted, iterations=1)
    start = time.perf_counter()
    fit = model.fit(log, window=WINDOW, chosen=fitted)
    seconds = time.perf_counter() - start
    errors = {
        name: fit.error(log, window=WINDOW, chosen=held, fitted=own)["positions"]
        for name, own in (("nominal", False), ("fitted", True))
    }
    return {"fit": fit, "seconds": seconds, **errors}


class Sysid:
    """The same windows and parameters for `mujoco.sysid`, which takes the initial states from the readings."""

    def __init__(self, model: Model, log: Log):
        import mujoco
        from mujoco import sysid

        self.mujoco, self.sysid, self.model, self.log = mujoco, sysid, model, log
        robot = model.robot
        with tempfile.TemporaryDirectory() as folder:
            path = legged.save_mjcf(
                robot, Path(folder) / "go2.xml", scene=True, kp=KP, kd=KD, time_step=model.time_step
            )
            self.spec = mujoco.MjSpec.from_file(str(path))
        self.spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        for joint in robot.joints:
            self.spec.add_sensor(
                name=f"{joint.name}_pos",
                type=mujoco.mjtSensor.mjSENS_JOINTPOS,
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
                objname=joint.name,
            )
        self.compiled = self.spec.compile()
        self.parameters = sysid.ParameterDict()
        fields = {"damping": "damping", "armature": "armature", "friction": "frictionloss"}
        for name, parameter in parameters(robot).items():
            joint, field = name.removeprefix("robot.").rsplit(".", 1)

            def write(spec: Any, p: Any, joint: str = joint, field: str = fields[field]) -> None:
                value = float(p.value[0])
                setattr(spec.joint(joint), field, [value, 0.0, 0.0] if field == "damping" else value)

            bounds = parameter.nominal, parameter.lower, parameter.upper
            self.parameters.add(sysid.Parameter(name, *bounds, modifier=write))

    def sequences(self, chosen: list[int]) -> Any:
        """Return windows of the log as sequences."""
        from legged.identification.shooting import windows

        shooting = self.model._shooting(self.log, cuts := windows(self.log, WINDOW, chosen))
        q, v = shooting.initial_states(self.model.parameters.nominal)
        names, states, controls, readings = [], [], [], []
        for i, cut in enumerate(cuts):
            rows = slice(cut.start, cut.end + 1)
            times = self.log.times[rows] - self.log.times[cut.start]
            names.append(f"window {cut.start}")
            states.append(self.sysid.create_initial_state(self.compiled, q[i], v[i], np.zeros(0)))
            controls.append(self.sysid.TimeSeries(times, self.log.desired[rows]))
            readings.append(self.sysid.TimeSeries.from_names(times, self.log.positions[rows], self.compiled))
        return self.sysid.ModelSequences("go2", self.spec, names, states, controls, readings)

    def fit(self, chosen: list[int]) -> tuple[Any, float, int]:
        """Return (the parameters, time of the fit [s], number of residual evaluations)."""
        residual = self.sysid.build_residual_fn(models_sequences=[self.sequences(chosen)], n_threads=1)
        calls = [0]

        def counted(x: Any, p: Any, **options: Any) -> Any:
            calls[0] += 1 if np.ndim(x) == 1 else np.shape(x)[1]
            return residual(x, p, **options)

        start = time.perf_counter()
        # Further steps lower the cost by less than 1e-5 of it, where the other fit ends.
        options = {"max_iters": 5, "verbose": False}
        found, _ = self.sysid.optimize(self.parameters.copy(), counted, optimizer="mujoco", **options)
        return found, time.perf_counter() - start, calls[0]

    def error(self, found: Any, chosen: list[int]) -> float:
        """Return the root mean square error of the positions, [rad]."""
        sequences = self.sequences(chosen)
        residual = self.sysid.build_residual_fn(models_sequences=[sequences], n_threads=1, return_pred_all=True)
        _, predicted, _ = residual(found.as_vector(), found.copy())
        squares = []
        for start, own in zip(self.starts(chosen), predicted, strict=True):
            (signal,) = own
            at = self.log.times[start] + signal.times
            measured = np.stack([np.interp(at, self.log.times, x) for x in self.log.positions.T], axis=1)
            squares.append(np.mean((signal.data - measured) ** 2))
        return float(np.sqrt(np.mean(squares)))

    def starts(self, chosen: list[int]) -> list[int]:
        """Return the first sample of windows."""
        from legged.identification.shooting import windows

        return [cut.start for cut in windows(self.log, WINDOW, chosen)]


def compare_on_go2() -> dict[str, Any]:
    """Return errors on windows that were not used, and times, of nominal values, of this fit and of `mujoco.sysid`."""
    robot = go2()
    log = air_log(robot)
    model = Model(robot, parameters(robot), motors=Motors(kp=KP, kd=KD))
    count = int(log.duration / WINDOW)
    fitted, held = list(range(0, count, 2)), list(range(1, count, 2))
    found = fit_with_legged(model, log, fitted, held)
    found["steps"] = len(found["fit"].solution.costs) - 1
    other = Sysid(model, log)
    found["sysid nominal"] = other.error(other.parameters, held)
    values, found["sysid seconds"], found["sysid evaluations"] = other.fit(fitted)
    found["sysid fitted"] = other.error(values, held)
    found["sysid values"] = dict(zip(values.keys(), values.as_vector().tolist(), strict=True))
    found["seconds again"] = fit_with_legged(model, log, fitted, held)["seconds"]
    return found


def leg(damping: tuple[float, float], armature: float, friction: float, mass: float) -> legged.Robot:
    """Return two links on horizontal axes, with these parameters."""
    builder = legged.RobotBuilder("leg", legged.Link("trunk"), base=legged.FixedBase())
    for name, parent, own in (("thigh", "trunk", 0.6), ("shank", "thigh", mass)):
        link = legged.Link(name, legged.cylinder_inertia(own, 0.02, (0.0, 0.0, 0.0), (0.0, 0.0, -0.3)))
        physics = legged.JointPhysics(damping=damping[name == "shank"], armature=armature, friction=friction)
        at = (0.0, 0.0, 0.0 if parent == "trunk" else -0.3)
        builder.add(legged.Revolute(f"{name}_joint", "y", physics=physics), link, to=parent, at=at)
    return builder.build()


LEG = {
    "robot.thigh_joint.damping": Parameter(0.2, 0.0, 1.0),
    "robot.shank_joint.damping": Parameter(0.2, 0.0, 1.0),
    "robot.*.armature": Parameter(0.015, 0.001, 0.1),
    "robot.*.friction": Parameter(0.05, 0.0, 0.5),
    "motors.*.delay": Parameter(0.005, 0.0, 0.03),
    "robot.shank.mass": Parameter(0.6, 0.2, 2.0),
}
LEG_GAINS = {"kp": 15.0, "kd": 0.5}
NOISE = 1e-3  # [rad]


def mujoco_log(robot: legged.Robot, commands: Log, delay: float, step: float = 2.5e-4) -> Log:
    """Return the log of MuJoCo's simulation of a robot with servos whose commands, interpolated linearly, come late."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = legged.save_mjcf(robot, Path(folder) / "leg.xml", scene=True, time_step=step, **LEG_GAINS)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.dof_solref[:] = 2.0 * step, 1.0  # the stiffest friction of MuJoCo
    data = mujoco.MjData(model)
    data.qpos[:] = commands.desired[0]
    count = round((commands.times[1] - commands.times[0]) / step)
    at = step * np.arange(count * (len(commands.times) - 1)) + 0.5 * step - delay
    controls = np.stack([np.interp(at, commands.times, x) for x in commands.desired.T], axis=1)
    positions = [data.qpos.copy()]
    for k, control in enumerate(controls):
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        if (k + 1) % count == 0:
            positions.append(data.qpos.copy())
    return dataclasses.replace(commands, positions=np.array(positions), rates=None)


def recovery(seeds: int, level: float = 0.9) -> dict[str, Any]:
    """Return the share of intervals that hold the parameters with which MuJoCo made the logs, name -> share.

    Each seed has other parameters and other noise of the encoders.
    """
    nominal = leg((0.2, 0.2), 0.015, 0.05, 0.6)
    motors = Motors(kp=LEG_GAINS["kp"], kd=LEG_GAINS["kd"])
    model = Model(nominal, LEG, motors=motors, noise={"positions": NOISE}, time_step=1.25e-3)
    commands = excitation(nominal, duration=4.0, speed=8.0, lower=-1.2, upper=1.2).log
    inside, errors = [], []
    start = time.perf_counter()
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = rng.uniform([0.1, 0.1, 0.01, 0.02, 0.002, 0.4], [0.4, 0.4, 0.03, 0.15, 0.02, 1.0])
        d1, d2, armature, friction, delay, mass = truth.tolist()
        log = mujoco_log(leg((d1, d2), armature, friction, mass), commands, delay)
        noisy = log.positions + rng.normal(0.0, NOISE, log.positions.shape)
        fit = model.fit(dataclasses.replace(log, positions=noisy))
        low, high = np.array(list(fit.intervals(level).values())).T
        inside.append((low < truth) & (truth < high))
        errors.append(np.abs(fit.numbers / truth - 1.0))
    shares = dict(zip(model.parameters.names, np.mean(inside, axis=0).tolist(), strict=True))
    medians = dict(zip(model.parameters.names, np.median(errors, axis=0).tolist(), strict=True))
    return {"shares": shares, "mean": float(np.mean(inside)), "errors": medians, "seconds": time.perf_counter() - start}
