"""Speed of functions beyond the dynamics: inverse kinematics, automatic derivatives, kernels with parameters."""

import numpy as np

import legged
import robots
from benchmarks.harness.record import RATIO, Record, quantity_table
from benchmarks.harness.subjects import Settings
from benchmarks.harness.timing import Workload, check_agreement, repeat, time_in_turns
from legged.table import Table

KIND = "functions"
INVERSE_KINEMATICS, JACOBIAN, PARAMETERS = "inverse kinematics", "jacobian of forward dynamics", "robot parameters"
ONE, BATCH, LOOP, DIFFERENCES = "one state", "batch", "loop over single calls", "finite differences"
WITHOUT, BATCH_WITHOUT = "without parameters", "batch without parameters"
_BATCH = 256
_STEP = 1e-6
"""Step of the finite differences: the error of central differences is then about 1e-8 of the derivative."""


def measure_functions(record: Record, settings: Settings) -> list[Table]:
    """Add the times to the record, and return them as a table."""
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(0)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(_BATCH)])
    v, tau = rng.normal(size=(2, _BATCH, robot.nv))
    groups = {
        INVERSE_KINEMATICS: _inverse_kinematics(robot),
        JACOBIAN: _derivatives(robot, q[0], v[0], tau[0]),
        PARAMETERS: _parameters(robot, q, v, tau),
    }
    slower = {INVERSE_KINEMATICS: (LOOP, BATCH), JACOBIAN: (DIFFERENCES, ONE), PARAMETERS: (ONE, WITHOUT)}
    for group, workloads in groups.items():
        times = time_in_turns(workloads, settings.rounds)
        for name, measured in times.items():
            record.add((KIND, robot.name, group, name), "us", measured.spread(1e6))
        slow, fast = slower[group]
        record.add((KIND, robot.name, group, "ratio"), RATIO, times[slow].ratio_to(times[fast]))
    shown = {name: name for name in (ONE, BATCH, LOOP, DIFFERENCES, WITHOUT, BATCH_WITHOUT, "ratio")}
    notes = (
        f"Microseconds for one state, called from Python; batches of {_BATCH}. Inverse kinematics places four feet and",
        "the trunk. Finite differences call the compiled function twice for each velocity.",
        "The parameters are masses of trunk and shank and the damping of two joints, 4 numbers, checked at each",
        "call. Ratios: loop / batch; finite differences / jacobian; with / without parameters.",
    )
    return [quantity_table(record, KIND, ("robot", "function"), shown, "Functions", notes)]


def _inverse_kinematics(robot: legged.Robot) -> dict[str, Workload]:
    """Return the workloads of solving for four feet and the trunk near a standing configuration."""
    feet = [f"leg{i}_foot" for i in (1, 2, 3, 4)]
    solver = legged.InverseKinematics(robot, {**dict.fromkeys(feet, "position"), "trunk": "pose"})
    rng = np.random.default_rng(0)
    start = legged.integrate(robot, robot.neutral(), 0.3 * rng.normal(size=robot.nv))
    there = [legged.integrate(robot, start, 0.1 * rng.normal(size=robot.nv)) for _ in range(_BATCH)]
    poses = {name: [legged.frame_pose(robot, q, name) for q in there] for name in (*feet, "trunk")}
    positions = {name: np.array([pose.position for pose in own]) for name, own in poses.items()}
    R = np.array([pose.rotation for pose in poses["trunk"]])
    targets = {**positions, "trunk": (R, positions["trunk"])}
    single = [
        {**{name: x[i] for name, x in positions.items()}, "trunk": (R[i], positions["trunk"][i])} for i in range(_BATCH)
    ]

    def solve_all() -> np.ndarray:
        return np.array([solver.solve(start, wanted).q for wanted in single])

    check_agreement("batch and single calls", solver.solve_batch(start, targets).q, solve_all(), 1e-8)
    return {
        ONE: Workload(repeat(solver.solve, start, single[0])),
        BATCH: Workload(repeat(solver.solve_batch, start, targets), states=_BATCH),
        LOOP: Workload(repeat(solve_all), states=_BATCH),
    }


def _derivatives(robot: legged.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> dict[str, Workload]:
    """Return the workloads of the derivative of forward dynamics with respect to velocities."""
    kernel = legged.compile(legged.jacobian(legged.forward_dynamics, "v"), robot)
    plain = legged.compile(legged.forward_dynamics, robot)

    def differences() -> np.ndarray:
        columns = [(plain(q, v + e, tau) - plain(q, v - e, tau)) / (2.0 * _STEP) for e in _STEP * np.eye(robot.nv)]
        return np.stack(columns, axis=1)

    check_agreement("jacobian and finite differences", kernel(q, v, tau)[None], differences()[None], 1e-5)
    return {ONE: Workload(repeat(kernel, q, v, tau)), DIFFERENCES: Workload(repeat(differences))}


def _parameters(robot: legged.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> dict[str, Workload]:
    """Return the workloads of forward dynamics with and without numbers of the robot as inputs."""
    names = ["trunk.mass", "leg1_shank.mass", "leg1_hip.damping", "leg1_knee.damping"]
    with_parameters = legged.compile(legged.forward_dynamics, robot, parameters=names)
    plain = legged.compile(legged.forward_dynamics, robot)
    numbers = np.array([robot.parameters()[name] for name in names], float)
    many = np.tile(numbers, (len(q), 1))
    check_agreement("with and without parameters", with_parameters(q, v, tau, many), plain(q, v, tau), 1e-8)
    return {
        ONE: Workload(repeat(with_parameters, q[0], v[0], tau[0], numbers)),
        WITHOUT: Workload(repeat(plain, q[0], v[0], tau[0])),
        BATCH: Workload(repeat(with_parameters, q, v, tau, many), states=len(q)),
        BATCH_WITHOUT: Workload(repeat(plain, q, v, tau), states=len(q)),
    }
