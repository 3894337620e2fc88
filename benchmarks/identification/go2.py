"""The log of a real Go2: `../shared/data/go2-air-log.npz`, in another folder if LEGGED_DATA names one.

Fits are compared with those of `mujoco.sysid` where it is installed (`pip install 'mujoco[sysid]'`).
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
from legged.errors import MissingError
from legged.identification import Log, Model, Motors, Parameter, read
from legged.identification.shooting import windows

DATA = Path(os.environ.get("LEGGED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "go2-air-log.npz"
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

        if not hasattr(sysid, "optimize"):  # MuJoCo has the package also without what it needs
            raise MissingError("mujoco.sysid is not installed: pip install 'mujoco[sysid]'")
        assert log.desired is not None
        self.desired = log.desired
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
        shooting = self.model._shooting(self.log, cuts := windows(self.log, WINDOW, chosen))
        q, v = shooting.initial_states(self.model.parameters.nominal)
        names, states, controls, readings = [], [], [], []
        for i, cut in enumerate(cuts):
            rows = slice(cut.start, cut.end + 1)
            times = self.log.times[rows] - self.log.times[cut.start]
            names.append(f"window {cut.start}")
            states.append(self.sysid.create_initial_state(self.compiled, q[i], v[i], np.zeros(0)))
            controls.append(self.sysid.TimeSeries(times, self.desired[rows]))
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
        estimate, _ = self.sysid.optimize(self.parameters.copy(), counted, optimizer="mujoco", **options)
        return estimate, time.perf_counter() - start, calls[0]

    def error(self, estimate: Any, chosen: list[int]) -> float:
        """Return the root mean square error of the positions, [rad]."""
        sequences = self.sequences(chosen)
        residual = self.sysid.build_residual_fn(models_sequences=[sequences], n_threads=1, return_pred_all=True)
        _, predicted, _ = residual(estimate.as_vector(), estimate.copy())
        squares = []
        for start, own in zip(self.starts(chosen), predicted, strict=True):
            (signal,) = own
            at = self.log.times[start] + signal.times
            measured = np.stack([np.interp(at, self.log.times, x) for x in self.log.positions.T], axis=1)
            squares.append(np.mean((signal.data - measured) ** 2))
        return float(np.sqrt(np.mean(squares)))

    def starts(self, chosen: list[int]) -> list[int]:
        """Return the first sample of windows."""
        return [cut.start for cut in windows(self.log, WINDOW, chosen)]


def compare_on_go2() -> dict[str, Any]:
    """Return errors on windows that were not used, and times, of nominal values, of this fit and of `mujoco.sysid`."""
    robot = go2()
    log = air_log(robot)
    model = Model(robot, parameters(robot), motors=Motors(kp=KP, kd=KD))
    count = int(log.duration / WINDOW)
    fitted, held = list(range(0, count, 2)), list(range(1, count, 2))
    comparison = fit_with_legged(model, log, fitted, held)
    comparison["steps"] = len(comparison["fit"].solution.costs) - 1
    other = Sysid(model, log)
    comparison["sysid nominal"] = other.error(other.parameters, held)
    values, comparison["sysid seconds"], comparison["sysid evaluations"] = other.fit(fitted)
    comparison["sysid fitted"] = other.error(values, held)
    comparison["sysid values"] = dict(zip(values.keys(), values.as_vector().tolist(), strict=True))
    comparison["seconds again"] = fit_with_legged(model, log, fitted, held)["seconds"]
    return comparison


def agreement_on_go2(count: int = 4) -> dict[str, Any]:
    """Return coefficients of variation of fits to disjoint windows, and the parameters that the whole log leaves open.

    The windows are dealt out to the parts one by one. Parameters belong to each joint, or are shared by the legs.
    """
    robot = go2()
    log = air_log(robot)
    number = len(windows(log, WINDOW))
    each = parameters(robot)
    shared = {f"robot.*_{j}_joint.{k}": Parameter(*b) for j in ("hip", "thigh", "calf") for k, b in BOUNDS.items()}
    agreement = {}
    for kind, chosen in (("each joint", each), ("shared by the legs", shared)):
        model = Model(robot, chosen, motors=Motors(kp=KP, kd=KD))
        parts = [model.fit(log, window=WINDOW, chosen=list(range(i, number, count))).numbers for i in range(count)]
        means, deviations = np.mean(parts, axis=0), np.std(parts, axis=0, ddof=1)
        fields = np.array([name.rpartition(".")[2] for name in model.parameters.names])
        variation = {k: float(deviations[fields == k].mean() / means[fields == k].mean()) for k in BOUNDS}
        whole = model.fit(log, window=WINDOW)
        robust = whole.identifiability.robust_deviations / np.maximum(np.abs(whole.numbers), 1e-12)
        limits = np.array([0.03 if field == "armature" else 0.05 for field in fields])
        unclear = [f"{n} ({100 * r:.0f} %)" for n, r, most in zip(whole.names, robust, limits, strict=True) if r > most]
        sentence = f"the log does not tell {len(unclear)} of {len(whole.names)} within 5 % (armature 3 %)"
        text = f"{sentence}: {', '.join(unclear)}; {whole.identifiability}"
        agreement[kind] = {"variation": variation, "open": text, "values": whole.values}
    return agreement
