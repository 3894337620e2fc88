"""Logs that MuJoCo and the toolkit make with known parameters, which the fits have to recover."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
from benchmarks.identification.go2 import go2
from legged.ground import Ground, VectorFriction, realistic_ground
from legged.identification import Log, Model, Motors, Parameter, excitation


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
LEG_GAINS: dict[str, Any] = {"kp": 15.0, "kd": 0.5}
NOISE = 1e-3  # [rad]


def mujoco_log(robot: legged.Robot, commands: Log, delay: float, step: float = 2.5e-4, integrator: str = "RK4") -> Log:
    """Return the log of MuJoCo's simulation of a robot with servos whose commands, interpolated linearly, come late."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = legged.save_mjcf(robot, Path(folder) / "leg.xml", scene=True, time_step=step, **LEG_GAINS)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.dof_solref[:] = 2.0 * step, 1.0  # the stiffest friction of MuJoCo
    data = mujoco.MjData(model)
    assert commands.desired is not None
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


INTEGRATORS = (("RK4", 1.0), ("EULER", 1.0), ("EULER", 0.25), ("EULER", 0.125), ("IMPLICITFAST", 1.0))
"""Integrators of MuJoCo and time steps, [ms]."""
TRUTH = (0.2, 0.3, 0.02, 0.1, 0.01, 0.8)
"""Values of the parameters of `LEG` for `errors_without_noise`."""


def errors_without_noise() -> dict[tuple[str, float], dict[str, float]]:
    """Return (integrator, time step [ms]) of MuJoCo -> parameter -> relative error of a fit of a log without noise."""
    d1, d2, armature, friction, delay, mass = TRUTH
    model, commands = _model_and_commands()
    robot, fits = leg((d1, d2), armature, friction, mass), {}
    for integrator, step in INTEGRATORS:
        fit = model.fit(mujoco_log(robot, commands, delay, 1e-3 * step, integrator))
        fits[integrator, step] = dict(zip(fit.names, (fit.numbers / np.array(TRUTH) - 1.0).tolist(), strict=True))
    return fits


def _model_and_commands() -> tuple[Model, Log]:
    """Return the model of the leg at nominal values, and the commands of its excitation."""
    nominal = leg((0.2, 0.2), 0.015, 0.05, 0.6)
    motors = Motors(kp=LEG_GAINS["kp"], kd=LEG_GAINS["kd"])
    model = Model(nominal, LEG, motors=motors, noise={"positions": NOISE}, time_step=6.25e-4)
    return model, excitation(nominal, duration=4.0, speed=8.0, lower=-1.2, upper=1.2).log


def recovery(seeds: int, level: float = 0.9) -> dict[str, Any]:
    """Return the shares of intervals that hold the parameters with which MuJoCo made the logs, and median errors.

    Shares are for independent noise and, robust, by the scatter of the windows. Each seed has other parameters and
    other noise of the encoders.
    """
    model, commands = _model_and_commands()
    inside, errors = [], []
    start = time.perf_counter()
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = rng.uniform([0.1, 0.1, 0.01, 0.02, 0.002, 0.4], [0.4, 0.4, 0.03, 0.15, 0.02, 1.0])
        d1, d2, armature, friction, delay, mass = truth.tolist()
        log = mujoco_log(leg((d1, d2), armature, friction, mass), commands, delay)
        noisy = log.positions + rng.normal(0.0, NOISE, log.positions.shape)
        fit = model.fit(dataclasses.replace(log, positions=noisy))
        bounds = [list(fit.intervals(level, robust).values()) for robust in (False, True)]
        low, high = np.array(bounds).transpose(2, 0, 1)
        inside.append((low < truth) & (truth < high))
        errors.append(np.abs(fit.numbers / truth - 1.0))
    shares = dict(zip(model.parameters.names, np.mean(inside, axis=0).T.tolist(), strict=True))
    medians = dict(zip(model.parameters.names, np.median(errors, axis=0).tolist(), strict=True))
    means = np.mean(inside, axis=(0, 2)).tolist()
    return {"shares": shares, "means": means, "errors": medians, "seconds": time.perf_counter() - start}


STEPS = legged.simulation.LinearlyImplicitEuler(2.5e-4)
PAYLOAD, FRICTION = 3.0, 0.35  # [kg] on the trunk, and the coefficient of the ground
TROT = {
    "robot.base.mass": Parameter(None, 2.0, 20.0),
    "robot.base.center[0]": Parameter(None, -0.2, 0.2),
    "ground.friction.coefficient": Parameter(0.8, 0.1, 1.5),
}


def slippery_ground(robot: legged.Robot, coefficient: float) -> Ground:
    """Return a ground whose friction law has no memory."""
    ground = realistic_ground(robot, penetration=2e-3, law="kelvin-voigt", stick=False)
    friction = ground.friction
    assert isinstance(friction, VectorFriction)
    return dataclasses.replace(ground, friction=dataclasses.replace(friction, coefficient=coefficient))


def trot_log(robot: legged.Robot, ground: Ground, seed: int, duration: float = 0.8, noise: float = 1.0) -> Log:
    """Return the log of a trot at 1 kHz: torques, joints, and the base, with `noise` times that of usual sensors."""
    law = controllers.Locomotion("trot", controllers.Command(vx=0.5, yaw_rate=0.8))
    run = legged.simulate(robot, law, ground=ground, until=duration + 0.4, sample=1e-3, integrator=STEPS)
    kept = np.asarray(run.times) >= 0.4
    q, v, tau = (np.asarray(x)[kept] for x in (run.q, run.v, run.tau))
    rng, n = np.random.default_rng(seed), int(kept.sum())
    turned = np.array([legged.integrate(robot, x, d) for x, d in zip(q, noise * _noise(rng, n, robot.nv), strict=True)])
    return Log(
        1e-3 * np.arange(n),
        tuple(joint.name for joint in robot.joints),
        turned[:, 7:],
        rates=v[:, 6:] + noise * rng.normal(0.0, 0.1, (n, robot.nv - 6)),
        torques=tau[:, 6:],
        base=turned[:, :7],
        twist=v[:, :6] + noise * rng.normal(0.0, 0.02, (n, 6)),
    )


def _noise(rng: np.random.Generator, count: int, nv: int) -> np.ndarray:
    """Return deviations of configurations: 2 mrad and 1 mm of the base, 1 mrad of the joints."""
    return rng.normal(size=(count, nv)) * np.array([2e-3] * 3 + [1e-3] * 3 + [1e-3] * (nv - 6))


def trot() -> dict[str, tuple[float, float, float]]:
    """Return name -> (true value, fitted value, deviation) of payload and friction of a trotting Go2."""
    nominal = go2("floating")
    mass = nominal.link("base").inertia.mass
    heavy = nominal.with_parameters({"base.mass": mass + PAYLOAD})
    log = trot_log(heavy, slippery_ground(nominal, FRICTION), seed=0)
    noise = {"base": 1.5e-3, "rates": 0.1, "twist": 0.02, "positions": 1e-3}
    model = Model(nominal, TROT, ground=slippery_ground(nominal, 0.8), noise=noise, time_step=2.5e-4)
    fit = model.fit(log, window=0.05, loss="huber")
    center = float(nominal.link("base").inertia.center[0])
    truth = (mass + PAYLOAD, center, FRICTION)
    rows = zip(truth, fit.numbers.tolist(), fit.identifiability.deviations.tolist(), strict=True)
    return dict(zip(fit.names, rows, strict=True))
