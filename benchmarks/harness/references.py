"""The same robots in Pinocchio and in MuJoCo: models, conversions of states, and workloads to time."""

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol
from xml.etree import ElementTree

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.subjects import FORWARD, INERTIA, INVERSE
from benchmarks.harness.timing import Disagreement, Workload, repeat
from legged import conversions
from legged.contact import Box, FreeBody
from legged.files.export_description import contact_names
from legged.files.mjcf.export import to_mjcf

DERIVATIVES = "derivatives"
LOOP_STATES = 64
"""Number of states in a Python loop; the time for one state does not depend on it."""


@cache
def pinocchio() -> Any:
    """Return the module `pinocchio`, or None if it is not installed."""
    try:
        return importlib.import_module("pinocchio")
    except ImportError:
        return None


@cache
def mujoco() -> Any:
    """Return the module `mujoco` with its module `rollout`, or None if it is not installed."""
    try:
        importlib.import_module("mujoco.rollout")
    except ImportError:
        return None
    return importlib.import_module("mujoco")


class PinocchioRobot:
    """A robot in Pinocchio, built by the tests' oracle from the same definition, and states in its conventions.

    Attributes:
        model, data: Pinocchio's model and data.
    """

    def __init__(self, robot: legged.Robot, states: Sequence[np.ndarray]):
        """Build the model.

        Args:
            robot: The robot.
            states: q (B, nq), v (B, nv), and accelerations or forces (B, nv), in our conventions.
        """
        pin = pinocchio()
        self._oracle: Any = importlib.import_module("tests.oracles.programs.pinocchio_model").pinocchio_twin(robot)
        self.model, self.data = self._oracle.model, self._oracle.data
        self._states = [np.stack([self._oracle.q(q) for q in states[0]])]
        self._states += [np.stack([self._oracle.v(x) for x in a]) for a in states[1:]]
        self._functions = {
            FORWARD: pin.aba,
            INVERSE: pin.rnea,
            INERTIA: pin.crba,
            DERIVATIVES: pin.computeABADerivatives,
        }
        self._batch_functions = {FORWARD: pin.abaInParallel, INVERSE: pin.rneaInParallel}

    def results(self, function: str, count: int) -> np.ndarray:
        """Return the results for the first `count` states in our conventions, (count, nv) or (count, nv, nv)."""
        results = [self._call(function, k) for k in range(count)]
        if function == INERTIA:
            return self._matrices(np.stack(results), is_symmetric=True)
        return np.stack([self._oracle.ours(result) for result in results])

    def _matrices(self, matrices: np.ndarray, is_symmetric: bool = False) -> np.ndarray:
        """Return matrices (B, nv, nv) in our order of coordinates; Pinocchio fills the upper half of symmetric ones."""
        if is_symmetric:
            upper = np.triu(matrices)
            matrices = upper + np.triu(upper, 1).swapaxes(1, 2)
        signs, (rows, columns) = np.outer(self._oracle.v_sign, self._oracle.v_sign), np.ix_(*2 * [self._oracle.v_index])
        return matrices[:, rows, columns] * signs

    def _arguments(self, function: str, k: int) -> list[np.ndarray]:
        return [rows[k] for rows in self._states[: 1 if function == INERTIA else 3]]

    def _call(self, function: str, k: int) -> np.ndarray:
        return self._functions[function](self.model, self.data, *self._arguments(function, k)).copy()

    def single(self, function: str) -> Workload:
        """Return a call from Python with one state."""
        return Workload(repeat(self._functions[function], self.model, self.data, *self._arguments(function, 0)))

    def loop(self, function: str) -> Workload:
        """Return a Python loop over `LOOP_STATES` states."""
        algorithm, model, data = self._functions[function], self.model, self.data
        states = [self._arguments(function, k) for k in range(min(LOOP_STATES, len(self._states[0])))]

        def run() -> None:
            for q, v, x in states:
                algorithm(model, data, q, v, x)

        return Workload(repeat(run), len(states))

    def derivatives(self) -> tuple[Workload, list[np.ndarray]]:
        """Return (a Python loop that copies the derivatives of forward dynamics to arrays, its results).

        The results are the derivatives with respect to q, v and tau, (LOOP_STATES, nv, nv) each, in our conventions.
        """
        model, data, derive = self.model, self.data, self._functions[DERIVATIVES]
        states = [self._arguments(DERIVATIVES, k) for k in range(min(LOOP_STATES, len(self._states[0])))]
        out = [np.empty((len(states), model.nv, model.nv)) for _ in range(3)]

        def run() -> None:
            for k, (q, v, x) in enumerate(states):
                out[0][k], out[1][k], out[2][k] = derive(model, data, q, v, x)

        run()
        results = [self._matrices(out[0]), self._matrices(out[1]), self._matrices(out[2], is_symmetric=True)]
        return Workload(repeat(run), len(states)), results

    def batch(self, function: str, threads: int = 1) -> tuple[Workload, np.ndarray]:
        """Return (a call of Pinocchio's function for batches, its results in our conventions (B, nv))."""
        pool = pinocchio().ModelPool(self.model, threads)
        columns = [np.asfortranarray(rows.T) for rows in self._states]
        out = np.empty((self.model.nv, len(self._states[0])), order="F")
        run = repeat(self._batch_functions[function], threads, pool, *columns, out)
        run(1)
        return Workload(run, len(self._states[0]), threads > 1), self._oracle.ours(out.T)


class Servos(NamedTuple):
    """Position servos instead of motors, with which a robot stands on the plane z = 0 on spheres at its contact points.

    Attributes:
        kp, kd: Gains, [N m/rad] and [N m s/rad].
        radius: Radius of the spheres, [m].
        friction: Coefficient of friction of spheres and plane.
    """

    kp: float
    kd: float
    radius: float = 0.02
    friction: float = 0.8


class MujocoRobot:
    """A robot in MuJoCo, from the MJCF that this package exports.

    A state of MuJoCo is [time, qpos, qvel], (n,) with n = 1 + model.nq + model.nv.

    Attributes:
        model, data: MuJoCo's model and data.
        conversion: Conversion between our state vectors and MuJoCo's.
    """

    def __init__(self, robot: legged.Robot, time_step: float, servos: Servos | None = None):
        """Build the model.

        Args:
            robot: The robot.
            time_step: Time step of MuJoCo's integrator, [s].
            servos: Servos with contact; None for motors at all joints and no contact.
        """
        module = mujoco()
        spec = module.MjSpec.from_string(ElementTree.tostring(to_mjcf(robot), encoding="unicode"))
        spec.option.timestep = time_step
        if servos:
            _add_feet(spec, robot, servos)
        _add_actuators(spec, servos)
        self.model = spec.compile()
        self.data = module.MjData(self.model)
        self.conversion = conversions.mujoco(robot, self.model)

    def to_mujoco(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return MuJoCo's state [time, qpos, qvel] at time 0, (..., n).

        Args:
            q: Our configuration, (..., nq).
            v: Our generalized velocity, (..., nv).
        """
        qpos = self.conversion.to_configuration(q)
        return np.concatenate([np.zeros((*q.shape[:-1], 1)), qpos, self.conversion.to_velocity(q, v)], axis=-1)

    def from_mujoco(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return our configuration (..., nq) and generalized velocity (..., nv).

        Args:
            state: MuJoCo's state [time, qpos, qvel], (..., n).
        """
        qpos, qvel = np.split(state[..., 1:], [self.model.nq], axis=-1)
        return self.conversion.from_configuration(qpos), self.conversion.from_velocity(qpos, qvel)

    def set_state(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set the state of `data`.

        Args:
            q: Our configuration, (nq,).
            v: Our generalized velocity, (nv,).
        """
        mujoco().mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = np.split(self.to_mujoco(q, v)[1:], [self.model.nq])

    @property
    def state(self) -> np.ndarray:
        """The state of `data`, (n,), [time, qpos, qvel]."""
        return np.concatenate([[self.data.time], self.data.qpos, self.data.qvel])

    def controls(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the inputs of the motors, (..., nu), [N m] or [N].

        Args:
            q: Our configuration, (..., nq).
            tau: Our generalized forces, (..., nv); those of the base are ignored.
        """
        return self.conversion.to_force(q, tau)[..., self.model.nv - self.model.nu :]

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return our generalized acceleration, (nv,), computed by `mj_forward`.

        Args:
            q: Our configuration, (nq,).
            v: Our generalized velocity, (nv,).
            tau: Our generalized forces, (nv,).
        """
        self.set_state(q, v)
        self.data.ctrl[:] = self.controls(q, tau)
        mujoco().mj_forward(self.model, self.data)
        return self.conversion.from_acceleration(self.data.qpos, self.data.qvel, self.data.qacc)


def _add_actuators(spec: Any, servos: Servos | None) -> None:
    module = mujoco()
    for joint in spec.joints:
        if joint.type != module.mjtJoint.mjJNT_FREE:
            motor = spec.add_actuator(target=joint.name, trntype=module.mjtTrn.mjTRN_JOINT)
            if servos:
                motor.set_to_position(kp=servos.kp, kv=servos.kd)


def _add_feet(spec: Any, robot: legged.Robot, servos: Servos) -> None:
    """Add the plane and the spheres; spheres collide with the plane alone."""
    geom, friction = mujoco().mjtGeom, [servos.friction, 0.005, 0.0001]
    plane = {"type": geom.mjGEOM_PLANE, "size": [50, 50, 1], "contype": 1, "conaffinity": 2}
    spec.worldbody.add_geom(**plane, friction=friction)
    for name in contact_names(robot):
        point = spec.site(name)
        sphere = {"type": geom.mjGEOM_SPHERE, "size": [servos.radius, 0, 0], "contype": 2, "conaffinity": 1, "mass": 0}
        point.parent.add_geom(**sphere, pos=point.pos, friction=friction)


class _HasModel(Protocol):
    """An object with a MuJoCo model."""

    model: Any


def mujoco_rollout(
    robot: _HasModel, states: np.ndarray, controls: np.ndarray, steps: int, threads: int = 1
) -> Callable[[], np.ndarray]:
    """Return a function that runs `mujoco.rollout` and returns the final states, (B, n).

    Args:
        robot: The robot or the scene.
        states: Initial states [time, qpos, qvel] of MuJoCo, (B, n).
        controls: Constant inputs of the actuators, (B, nu): joint torques [N m] for motors, joint angles [rad] for
            servos.
        steps: Number of time steps.
        threads: Number of threads.
    """
    module, model = mujoco(), robot.model
    datas = [module.MjData(model) for _ in range(threads)]
    out = np.empty((len(states), steps, states.shape[1]))
    inputs = np.ascontiguousarray(np.repeat(controls[:, None], steps, axis=1))

    def run() -> np.ndarray:
        module.rollout.rollout(model, datas, states, inputs, state=out, persistent_pool=threads > 1)
        return out[:, -1]

    return run


FRICTION = 0.3
TRUNK_POSITION = (0.01, 0.0, 1.14)  # [m]
EDGES = (0.1, 0.1, 0.1)  # [m]
BLOCK = FreeBody("block", legged.box_inertia(1.8, EDGES), [Box(EDGES)], position=(0.6, 0.0, 0.05))
_BIPED_SERVOS = Servos(kp=1000.0, kd=100.0)
_SETTLING_STEPS = 2000
"""Time steps after which the robot stands still."""
_MAX_SINKING, _WEIGHT_TOLERANCE = 0.02, 1e-3
"""Largest displacement of the trunk by the compliance of the servos, [m]; relative tolerance of the contact forces."""
_LINK, _BODY, _FLOOR = 1, 2, 4
"""Collision classes, as bits."""
_SOLE_THICKNESS = 0.02  # [m]


class MujocoBiped:
    """The spatial biped with box feet in MuJoCo, held by servos, and a block on the floor.

    Attributes:
        model, data: MuJoCo's model and data.
        robot: The biped.
    """

    def __init__(self, time_step: float):
        module, self.robot = mujoco(), robots.spatial_biped()
        spec = module.MjSpec.from_string(ElementTree.tostring(to_mjcf(self.robot), encoding="unicode"))
        spec.option.timestep, spec.option.integrator = time_step, module.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = module.mjtCone.mjCONE_ELLIPTIC  # the friction cone of our contact model
        _add_shapes(spec, self.robot)
        _add_actuators(spec, _BIPED_SERVOS)
        without_block = spec.compile()
        q, _ = controllers.WorkspaceBalance(TRUNK_POSITION).initial_state(self.robot)
        qpos = conversions.mujoco(self.robot, without_block).to_configuration(q)
        body = spec.worldbody.add_body(name=BLOCK.name, pos=list(BLOCK.position), mass=BLOCK.inertia.mass)
        body.add_freejoint()
        body.add_geom(**_box(np.array(EDGES) / 2, np.zeros(3), _BODY), mass=BLOCK.inertia.mass)
        self.model = spec.compile()
        self.data = module.MjData(self.model)
        self.data.qpos[: len(qpos)], self.data.ctrl[:] = qpos, qpos[7:]

    @property
    def state(self) -> np.ndarray:
        """The state of `data`, (n,), [time, qpos, qvel]."""
        return np.concatenate([[self.data.time], self.data.qpos, self.data.qvel])

    def normal_force(self) -> float:
        """Return the sum of the normal forces of all contacts, [N]."""
        wrench, total = np.zeros(6), 0.0
        for i in range(self.data.ncon):
            mujoco().mj_contactForce(self.model, self.data, i, wrench)
            total += wrench[0]
        return total


def standing_mujoco_biped(time_step: float) -> MujocoBiped:
    """Return the biped in MuJoCo once it stands still; `time_step` in [s].

    Raises:
        Disagreement: If it does not stand as ours does, near its initial position on twelve contacts that carry the
            weight.
    """
    scene = MujocoBiped(time_step)
    height = float(scene.data.qpos[2])
    mujoco().mj_step(scene.model, scene.data, _SETTLING_STEPS)
    sinking = height - float(scene.data.qpos[2])
    weight = (scene.robot.mass + BLOCK.inertia.mass) * float(np.linalg.norm(scene.robot.gravity))
    is_carried = abs(scene.normal_force() / weight - 1.0) <= _WEIGHT_TOLERANCE
    if scene.data.ncon != 12 or abs(sinking) > _MAX_SINKING or not is_carried:
        raise Disagreement(
            f"in MuJoCo the biped sank by {sinking:.3g} m on {scene.data.ncon} contacts that carry "
            f"{scene.normal_force():.4g} N of {weight:.4g} N"
        )
    return scene


def _add_shapes(spec: Any, robot: legged.Robot) -> None:
    """Add the floor, a box under each foot, and the boxes of the links."""
    floor = {"type": mujoco().mjtGeom.mjGEOM_PLANE, "size": [50, 50, 1], "contype": _FLOOR, "conaffinity": 7 - _FLOOR}
    spec.worldbody.add_geom(**floor, friction=[FRICTION, 0.005, 0.0001])
    for link in robot.links:
        points = np.array([contact.position for contact in robot.contacts if contact.link == link.index])
        if len(points):
            low, high = points.min(axis=0), points.max(axis=0) + _SOLE_THICKNESS * np.eye(3)[2]
            spec.body(link.name).add_geom(**_box((high - low) / 2, (high + low) / 2), mass=0)
        for shape in link.shapes:
            if isinstance(shape, Box):
                spec.body(link.name).add_geom(**_box(shape.half, np.asarray(shape.center)), mass=0)


def _box(half: np.ndarray, center: np.ndarray, collision_class: int = _LINK) -> dict[str, Any]:
    """Return a box of a collision class, which collides with the other classes."""
    shape = {"size": half.tolist(), "pos": center.tolist(), "friction": [FRICTION, 0.005, 0.0001]}
    return {
        "type": mujoco().mjtGeom.mjGEOM_BOX,
        "contype": collision_class,
        "conaffinity": 7 - collision_class,
        **shape,
    }
