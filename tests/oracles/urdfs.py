"""Robots from URDFs beside Pinocchio's models of the same files."""

from dataclasses import astuple, dataclass
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pinocchio as pin

import legged
from legged.conversions import pinocchio as conversion_to

STATES = 20


def all_urdfs() -> dict[str, Path]:
    """Return every URDF of the package example-robot-data, by `folder/file` without the words they share."""
    listed = [file for file in files("example-robot-data") or () if file.suffix == ".urdf"]
    named = {_short(Path(str(file))): Path(str(file.locate())) for file in listed}
    return dict(sorted(named.items()))


def _short(path: Path) -> str:
    folder = path.parts[path.parts.index("robots") + 1]
    return f"{folder.removesuffix('_description').removesuffix('_data')}/{path.stem}"


@dataclass(frozen=True)
class Agreement:
    """The largest disagreements over some states, relative.

    Attributes:
        inverse, bias: Norm of the difference over the norm of the forces.
        forward: Norm of the difference over the norm of the acceleration.
        forces: Our acceleration as forces: Pinocchio's inverse dynamics of it, less the torques given, over the sum of
            the norms of the torques and of the bias.
        their_forces: The same of Pinocchio's own acceleration.
        inertia: Largest |difference_ij| / sqrt(M_ii M_jj), which no unit and no small entry hides from.
        center: Norm of the difference over the size of the robot's center of mass, or 1 m.
        condition: Of the inertia matrix scaled so, which is what forward dynamics may lose.
    """

    inverse: float = 0.0
    forward: float = 0.0
    forces: float = 0.0
    their_forces: float = 0.0
    inertia: float = 0.0
    bias: float = 0.0
    center: float = 0.0
    condition: float = 1.0

    def worst(self, other: "Agreement") -> "Agreement":
        return Agreement(*np.maximum(astuple(self), astuple(other)))


def compare(path: Path, base: str, states: int = STATES, **options) -> tuple[legged.Robot, Agreement]:
    """Return the robot without friction, and how far it is from Pinocchio's model of the file over random states.

    Pinocchio lets joints move that follow others: the followers' part of its vectors is projected out, v' = G v.
    Joints that a repair welded are locked in its model.

    Args:
        path: The URDF. base: "floating" or "fixed". states: How many. options: Of `legged.load`.
    """
    robot = legged.load(path, base, joint_physics=False, gravity=(0, 0, -9.81), **options)
    model = pinocchio_of(path, robot)
    rng = np.random.default_rng(0)
    worst = Agreement()
    for _ in range(states):
        worst = worst.worst(_disagreement(robot, model, rng))
    return robot, worst


def pinocchio_of(path: Path, robot: legged.Robot) -> pin.Model:
    """Return Pinocchio's model of a URDF, with the joints locked that the robot has not."""
    free = (pin.JointModelFreeFlyer(),) if robot.base.kind == "floating" else ()
    model = pin.buildModelFromUrdf(str(path), *free)
    moving = {joint.name for joint in (*robot.joints, *robot.followers)} | {"universe", "root_joint"}
    locked = [index for index, name in enumerate(model.names) if name not in moving]
    return pin.buildReducedModel(model, locked, pin.neutral(model)) if locked else model


def _disagreement(robot: legged.Robot, model: pin.Model, rng: np.random.Generator) -> Agreement:
    data, to = model.createData(), conversion_to(robot, model)
    q = legged.random_configuration(robot, rng)
    v, vdot, tau = rng.normal(size=(3, robot.nv))
    q_pin = to.to_configuration(q)
    center = _apart(legged.center_of_mass(robot, q), _center(model, data, q_pin), least=1.0)
    if not robot.nv:
        return Agreement(center=center)
    v_pin = to.to_velocity(q, v)
    G = to.to_velocity(q, np.eye(robot.nv)).T

    def inverse(rates):
        return to.from_force(q_pin, pin.rnea(model, data, q_pin, v_pin, to.to_acceleration(q, v, rates)))

    def residual(rates):
        return float(np.linalg.norm(inverse(rates) - tau) / (np.linalg.norm(tau) + np.linalg.norm(bias)))

    bias = inverse(np.zeros(robot.nv))
    upper = np.triu(pin.crba(model, data, q_pin))
    M = G.T @ (upper + np.triu(upper, 1).T) @ G
    size = np.sqrt(np.outer(np.diag(M), np.diag(M)))
    rates = legged.forward_dynamics(robot, q, v, tau)
    if robot.followers:
        theirs = np.linalg.solve(M, tau - bias)
    else:
        theirs = to.from_acceleration(q_pin, v_pin, pin.aba(model, data, q_pin, v_pin, to.to_force(q, tau)))
    return Agreement(
        inverse=_apart(legged.inverse_dynamics(robot, q, v, vdot), inverse(vdot)),
        forward=_apart(rates, theirs),
        forces=residual(rates),
        their_forces=residual(theirs),
        inertia=float(np.abs((legged.inertia_matrix(robot, q) - M) / size).max()),
        bias=_apart(legged.bias_forces(robot, q, v), bias),
        center=center,
        condition=float(np.linalg.cond(M / size)),
    )


def _center(model: pin.Model, data: pin.Data, q: np.ndarray) -> np.ndarray:
    """Return the center of mass, (3,); Pinocchio's own leaves out what is fixed to the world."""
    ground = model.inertias[0]
    moving = pin.centerOfMass(model, data, q) if model.nv else np.zeros(3)
    mass = pin.computeTotalMass(model) if model.nv else 0.0
    return (mass * moving + ground.mass * ground.lever) / (mass + ground.mass)


def _apart(ours: np.ndarray, theirs: np.ndarray, least: float = 0.0) -> float:
    difference, size = np.linalg.norm(ours - theirs), max(float(np.linalg.norm(theirs)), least)
    return float(difference / size) if difference else 0.0


def pinocchio_acceleration(path: Path) -> str:
    """Return what Pinocchio's forward dynamics give on a file, in a word."""
    try:
        model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    except ValueError:
        return "does not read it"
    rng, data = np.random.default_rng(0), model.createData()
    tau, v = rng.normal(size=(2, model.nv))
    finite = np.isfinite(pin.aba(model, data, pin.neutral(model), v, tau)).all()
    return "a number" if finite else "NaN, without an error"
