# ruff: noqa: E501  (tables of values)
"""Valid calls of the public functions and classes above simulation, whose arguments have no usual names, for `argument_fuzz`."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
from oracles.standing import shared_quadruped

import legged
import robots
from legged import deployment, environments, estimation, identification, optimization, sweeps


def _of_state(state: Any) -> Any:
    return state.q[0]


def _effort(robot: Any, at: Any) -> Any:
    return at.u


def _of_run(run: Any) -> float:
    return 0.0


def _trial(x: float) -> float:
    return abs(x)


def package_calls(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return name -> (callable, valid arguments).

    Args:
        folder: For files.
    """
    return {**_tasks(), **_problems(), **_studies(folder), **_loops(), **_estimators(), **_identification()}


def _tasks() -> dict[str, tuple[Any, dict[str, Any]]]:
    quadruped, gains = shared_quadruped(), {"kp": 20.0, "kd": 0.5}
    rest = np.tile(quadruped.neutral(), (20, 1))
    motion = legged.simulate(quadruped, until=0.05, q=rest[0])
    return {
        "environments.Command": (environments.Command, {"draw": _of_state, "interval": (1.0, 2.0), "size": 3, "reflection": (1.0, -1.0, 1.0)}),
        "environments.Disturbance": (environments.Disturbance, {"linear": 0.5, "angular": 0.1, "interval": (1.0, 2.0)}),
        "environments.Memory": (environments.Memory, {"start": _of_state, "update": _of_state, "initial": 0.0}),
        "environments.Observation": (environments.Observation, {"function": _of_state, "scale": 1.0, "noise": 0.1, "limit": 100.0, "reflection": (1.0,)}),
        "environments.Range": (environments.Range, {"low": 0.0, "high": 1.0, "is_factor": False, "is_offset": False}),
        "environments.Reward": (environments.Reward, {"function": _of_state, "weight": 1.0}),
        "environments.Reference": (environments.Reference, {"robot": quadruped, "motion": motion, "period": 0.02, "is_cyclic": False}),
        "environments.acrobot": (environments.acrobot, {"robot": None, "tip": None}),
        "environments.pendulum": (environments.pendulum, {"robot": None, "kp": 1.0, "episode": 10.0, "time_step": 0.01, "substeps": 2, "action_scale": 0.2, "action_limit": 2.0}),
        "environments.velocity": (environments.velocity, {"robot": quadruped, "ground": None, "gait_period": 0.7, **gains}),
        "environments.jumping": (environments.jumping, {"robot": quadruped, "ground": None, "rise": (0.2, 0.6), "distance": (0.0, 2.0)}),
    }  # fmt: skip


def _problems() -> dict[str, tuple[Any, dict[str, Any]]]:
    pendulum = robots.chain(1, base=legged.FixedBase())
    stages = [optimization.Stage(0.01, terms=[optimization.Cost(_effort)]) for _ in range(3)]
    bounds = {"lower": -np.ones(1), "upper": np.ones(1), "duration_factors": (0.5, 2.0), "integrator": "midpoint"}
    numbers = dict.fromkeys(("velocity_gain", "restitution", "damping", "start_time"), 0.0)
    problem = optimization.Problem(pendulum, stages, q=pendulum.neutral())
    solution = optimization.solve(problem, iterations=3)
    return {
        "optimization.Contact": (optimization.Contact, {"frame": "a", "surface": False, "name": "b"}),
        "optimization.Cost": (optimization.Cost, {"function": _effort, "weight": 1.0, "barrier": False}),
        "optimization.Constraint": (optimization.Constraint, {"function": _effort, "form": "equality", "scale": 1.0}),
        "optimization.Stage": (optimization.Stage, {"duration": 0.01, "contacts": (), "terms": (), "phase": ""}),
        "optimization.Impact": (optimization.Impact, {"contacts": ("a",), "terms": ()}),
        "optimization.Problem": (optimization.Problem, {"robot": pendulum, "nodes": stages, "final": (), "q": pendulum.neutral(), "v": np.zeros(1), "actuated": None, **bounds, **numbers}),
        "optimization.Solver": (optimization.Solver, {"problem": problem, "second_order": False}),
        "optimization.solve": (optimization.solve, {"problem": problem, "q": None, "v": None, "u": None, "iterations": 2, "tolerance": 1e-9, "constraint_tolerance": 1e-4, "second_order": False}),
        "optimization.Tracking": (optimization.Tracking, {"problem": problem, "solution": solution, "share": 1.0, "lower": None, "upper": None, "early": 0.0, "late": 0.0, "settle": 0.0}),
        "optimization.regulated": (optimization.regulated, {"problem": problem, "solution": solution, "state": 1.0, "control": 1.0, "landing": 0.0}),
        "optimization.feet": (optimization.feet, {"robot": shared_quadruped()}),
    }  # fmt: skip


def _studies(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    drawn = {"n": 4, "distributions": {"x": (0.0, 1.0)}, "seed": 0, "units": None}
    calls: dict[str, tuple[Any, dict[str, Any]]] = {
        f"sweeps.{function.__name__}": (function, drawn)
        for function in (sweeps.random, sweeps.sobol, sweeps.latin_hypercube)
    }
    options = {"chunk": None, "seconds": 10.0, "units": None, "progress": False, "mix_versions": False, "retry": False, "worker_timeout": 300.0}  # fmt: skip
    return calls | {
        "sweeps.Choice": (sweeps.Choice, {"values": [1, 2]}),
        "sweeps.Samples": (sweeps.Samples, {"columns": {"x": [1.0, 2.0]}, "units": {"x": "m"}}),
        "sweeps.Setup": (sweeps.Setup, {"robot": robots.planar_hopper(), "until": 1.0, "metrics": {"success": sweeps.success}, "vary": None, "sample": 0.01, "options": {}}),
        "sweeps.grid": (sweeps.grid, {"values": {"x": [1.0, 2.0]}, "units": None}),
        "sweeps.of_run": (sweeps.of_run, {"function": _of_run, "unit": ""}),
        "sweeps.over_time": (sweeps.over_time, {"reduction": "maximum", "function": _of_run, "unit": ""}),
        "sweeps.pareto": (sweeps.pareto, {"values": np.ones((3, 2))}),
        "sweeps.success_interval": (sweeps.success_interval, {"successes": 1, "trials": 3, "confidence": 0.95, "method": "wilson"}),
        "sweeps.sweep": (sweeps.sweep, {"trial": _trial, "samples": {"x": [1.0, 2.0]}, "store": folder / "sweep", "client": None, **options}),
    }  # fmt: skip


def _loops() -> dict[str, tuple[Any, dict[str, Any]]]:
    robot = shared_quadruped()
    high = robot.state(base_position=(0.0, 0.0, 1.0)).q
    limits, command = deployment.SafetyLimits.of(robot), deployment.JointCommand.damping(robot.nj, 1.0)
    zero, feet = np.zeros(robot.nj), np.zeros(len(robot.contacts))
    reading = estimation.Reading(np.zeros(3), np.zeros(3), zero, zero, zero, feet, feet)
    return {
        "deployment.JointCommand.damping": (deployment.JointCommand.damping, {"nj": 2, "kd": 1.0}),
        "deployment.LiveVelocity": (deployment.LiveVelocity, {"speed": 0.5, "turning": 0.5, "steps": 5, "stop": None, "notice": None}),
        "deployment.Network": (deployment.Network, {"loss": 0.0, "delay": 0.0, "jitter": 0.0, "seed": 0}),
        "deployment.SafetyLimits": (deployment.SafetyLimits, {"torque": 10.0, "torque_rate": 10.0, "lower": -1.0, "upper": 1.0, "velocity": 10.0, "tilt": 1.0, "damping": 2.0, "margin": 0.1}),
        "deployment.SafetyLimits.of": (deployment.SafetyLimits.of, {"robot": robot}),
        "deployment.SafetyLimits.limited": (limits.limited, {"command": command, "reading": reading, "last": zero, "dt": 0.01}),
        "deployment.SafetyLimits.violation": (limits.violation, {"reading": reading, "q": robot.neutral()}),
        "deployment.SimulatedRobot": (deployment.SimulatedRobot, {"robot": robot, "q": high, "v": None, "instruments": None, "ground": None, "rate": 500.0, "step": 0.002}),
    }  # fmt: skip


def _estimators() -> dict[str, tuple[Any, dict[str, Any]]]:
    robot, times = shared_quadruped(), np.arange(5) * 0.01
    q, v, forces = np.tile(robot.neutral(), (5, 1)), np.zeros((5, robot.nv)), np.zeros((5, len(robot.contacts), 3))
    motion = {"robot": robot, "instruments": estimation.Instruments(), "times": times, "q": q, "v": v, "forces": forces}
    calls: dict[str, tuple[Any, dict[str, Any]]] = {}
    for kind in (estimation.Deviations, estimation.Instruments, estimation.InvariantFilter, estimation.LinearFilter):
        parameters = inspect.signature(kind).parameters.values()
        values = {p.name: p.default for p in parameters if isinstance(p.default, float | None)}
        calls[f"estimation.{kind.__name__}"] = kind, {name: x for name, x in values.items() if name[0] != "_"}
    filtered = {"estimator": estimation.InvariantFilter(), "readings": estimation.instrument_readings(**motion)}
    return calls | {
        "estimation.ElevationMap": (estimation.ElevationMap, {"shape": (10, 10), "spacing": 0.05, "vertical": 0.003, "horizontal": 0.003, "gate": 4.0}),
        "estimation.TorqueContacts": (estimation.TorqueContacts, {"filter": estimation.InvariantFilter(), "gain": 50.0}),
        "estimation.instrument_readings": (estimation.instrument_readings, {**motion, "torques": None, "seeds": None}),
        "estimation.run_estimator": (estimation.run_estimator, {"robot": robot, "times": times, "q": q[0], "v": v[0], **filtered}),
    }  # fmt: skip


def _identification() -> dict[str, tuple[Any, dict[str, Any]]]:
    chain, times, rng = robots.chain(2, base=legged.FixedBase()), np.arange(50) * 0.01, np.random.default_rng(1)
    motion = {name: rng.random((30, 2)) for name in ("q", "v", "vdot", "tau")}
    body, bounds = legged.sphere_inertia(1.0, 0.1), {"lower": -1.0, "upper": 1.0, "speed": 5.0, "acceleration": 50.0}
    columns = {"positions": np.zeros((50, 1)), "rates": np.zeros((50, 1)), "torques": np.zeros((50, 1)), "gyro": np.zeros((50, 3))}  # fmt: skip
    return {
        "identification.Log": (identification.Log, {"times": times, "joints": ("j",), **columns}),
        "identification.Motors": (identification.Motors, {"kp": 1.0, "kd": 1.0, "delay": 0.0, "gain": 1.0}),
        "identification.Parameter": (identification.Parameter, {"nominal": 1.0, "lower": 0.0, "upper": 2.0, "frozen": False}),
        "identification.base_parameters": (identification.base_parameters, {"robot": chain, "seed": 0}),
        "identification.excitation": (identification.excitation, {"robot": chain, "duration": 1.0, "harmonics": 2, "period": 0.02, **bounds, "iterations": 1, "seed": 0}),
        "identification.fit_inertias": (identification.fit_inertias, {"robot": chain, **motion, "with_friction": True, "total_mass": None, "regularization": 1e-6}),
        "identification.inertia_of": (identification.inertia_of, {"pseudo": identification.pseudo_inertia(body)}),
        "identification.pseudo_inertia": (identification.pseudo_inertia, {"inertia": body}),
        "identification.Model": (identification.Model, {"robot": chain, "parameters": {"robot.base.mass": identification.Parameter()}, "motors": None, "ground": None, "imu": None, "noise": None, "channels": None, "time_step": 0.0025}),
    }  # fmt: skip
