"""A robot in MuJoCo, as this package exports it, with motors or feet."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol
from xml.etree import ElementTree

import numpy as np

import legged
from legged import conversions
from legged.files.export_description import contact_names
from legged.files.mjcf_export import mjcf_of


@cache
def mujoco() -> Any:
    """Return the module, with `rollout`; None if it is not installed."""
    try:
        importlib.import_module("mujoco.rollout")
    except ImportError:
        return None
    return importlib.import_module("mujoco")


class Stand(NamedTuple):
    """What lets a robot stand: a sphere around every contact point, the plane z = 0, and servos in place of motors.

    Attributes:
        kp, kd: Of the servos, [N m/rad], [N m s/rad].
        radius: Of the spheres, [m]. friction: Coefficient of spheres and plane.
    """

    kp: float
    kd: float
    radius: float = 0.02
    friction: float = 0.8


class MujocoTwin:
    """A robot in MuJoCo.

    Attributes:
        model, data: MuJoCo's.
        their: Turns our vectors into MuJoCo's, and back.
    """

    def __init__(self, robot: legged.Robot, step: float, stand: Stand | None = None):
        """Build the model.

        Args:
            robot: The robot.
            step: Of MuJoCo's integrator, [s].
            stand: None for free flight, in which nothing collides, with a motor at every joint.
        """
        module = mujoco()
        spec = module.MjSpec.from_string(ElementTree.tostring(mjcf_of(robot), encoding="unicode"))
        spec.option.timestep = step
        if stand:
            _add_feet(spec, robot, stand)
        for joint in spec.joints:
            if joint.type != module.mjtJoint.mjJNT_FREE:
                motor = spec.add_actuator(target=joint.name, trntype=module.mjtTrn.mjTRN_JOINT)
                if stand:
                    motor.set_to_position(kp=stand.kp, kv=stand.kd)
        self.model = spec.compile()
        self.data = module.MjData(self.model)
        self.their = conversions.mujoco(robot, self.model)

    def state(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return [time, qpos, qvel], (..., 1 + nq + nv), at time 0."""
        qpos = self.their.to_configuration(q)
        return np.concatenate([np.zeros((*q.shape[:-1], 1)), qpos, self.their.to_velocity(q, v)], axis=-1)

    def ours(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (q, v) of [time, qpos, qvel]."""
        qpos, qvel = np.split(state[..., 1:], [self.model.nq], axis=-1)
        return self.their.from_configuration(qpos), self.their.from_velocity(qpos, qvel)

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        """Put `data` into a state."""
        mujoco().mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = np.split(self.state(q, v)[1:], [self.model.nq])

    def here(self) -> np.ndarray:
        """Return the state of `data`, [time, qpos, qvel]."""
        return np.concatenate([[self.data.time], self.data.qpos, self.data.qvel])

    def controls(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the motors' torques, (..., nu), for our generalized forces (..., nv); nothing drives the base."""
        return self.their.to_force(q, tau)[..., self.model.nv - self.model.nu :]

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return vdot, (nv,), by `mj_forward`."""
        self.place(q, v)
        self.data.ctrl[:] = self.controls(q, tau)
        mujoco().mj_forward(self.model, self.data)
        return self.their.from_acceleration(self.data.qpos, self.data.qvel, self.data.qacc)


def _add_feet(spec: Any, robot: legged.Robot, stand: Stand) -> None:
    """Add the plane and the spheres, which touch it alone."""
    kinds, friction = mujoco().mjtGeom, [stand.friction, 0.005, 0.0001]
    plane = {"type": kinds.mjGEOM_PLANE, "size": [50, 50, 1], "contype": 1, "conaffinity": 2}
    spec.worldbody.add_geom(**plane, friction=friction)
    for name in contact_names(robot):
        point = spec.site(name)
        sphere = {"type": kinds.mjGEOM_SPHERE, "size": [stand.radius, 0, 0], "contype": 2, "conaffinity": 1, "mass": 0}
        point.parent.add_geom(**sphere, pos=point.pos, friction=friction)


class Modeled(Protocol):
    """What has a model of MuJoCo's."""

    model: Any


def rolled_out(
    twin: Modeled, states: np.ndarray, controls: np.ndarray, steps: int, threads: int = 1
) -> Callable[[], np.ndarray]:
    """Return what runs `mujoco.rollout` and returns the last states.

    Args:
        twin: The scene. states: A row [time, qpos, qvel] for each member. controls: The motors' inputs, (B, nu).
        steps: How many. threads: How many share the members.
    """
    module, model = mujoco(), twin.model
    datas = [module.MjData(model) for _ in range(threads)]
    out = np.empty((len(states), steps, states.shape[1]))
    inputs = np.ascontiguousarray(np.repeat(controls[:, None], steps, axis=1))

    def run() -> np.ndarray:
        module.rollout.rollout(model, datas, states, inputs, state=out, persistent_pool=threads > 1)
        return out[:, -1]

    return run
