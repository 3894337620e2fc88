"""MuJoCo as an oracle: its accelerations without contacts, constraints and actuators."""

from contextlib import contextmanager
from xml.etree import ElementTree

import mujoco
import numpy as np

import legged
from legged.files.mjcf_export import mjcf_of
from legged.spatial import Array

_OFF = mujoco.mjtDisableBit
FREE_FLIGHT = _OFF.mjDSBL_CONTACT | _OFF.mjDSBL_CONSTRAINT | _OFF.mjDSBL_ACTUATION


@contextmanager
def quiet():
    """Keep MuJoCo's warnings, such as those of badly conditioned models, out of a file in the current folder."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda words: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def compiled(robot: legged.Robot) -> mujoco.MjModel:
    """Return MuJoCo's model of a robot of ours."""
    with quiet():
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(mjcf_of(robot), encoding="unicode"))


def acceleration(model: mujoco.MjModel, qpos: Array, qvel: Array, force: Array) -> Array:
    """Return qacc, (nv,), under applied generalised forces."""
    model.opt.disableflags |= FREE_FLIGHT
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos, qvel, force
    with quiet():
        mujoco.mj_forward(model, data)
    return data.qacc.copy()


def inverse(model: mujoco.MjModel, qpos: Array, qvel: Array, qacc: Array) -> Array:
    """Return the generalised forces, (nv,), of an acceleration."""
    model.opt.disableflags |= FREE_FLIGHT
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = qpos, qvel, qacc
    with quiet():
        mujoco.mj_inverse(model, data)
    return data.qfrc_inverse.copy()


def smooth_terms(model: mujoco.MjModel, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    """Return (M, f): the inertia matrix, (nv, nv), and passive forces less bias forces, (nv,)."""
    model.opt.disableflags |= FREE_FLIGHT
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    with quiet():
        mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M, data.qfrc_passive - data.qfrc_bias
