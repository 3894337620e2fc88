"""MuJoCo as a reference: accelerations without contacts, constraints and actuators."""

import mujoco
import numpy as np

from legged.files.mjcf.reader import captured_warnings
from legged.spatial import Array

_OFF = mujoco.mjtDisableBit
FREE_FLIGHT = _OFF.mjDSBL_CONTACT | _OFF.mjDSBL_CONSTRAINT | _OFF.mjDSBL_ACTUATION


def acceleration(model: mujoco.MjModel, qpos: Array, qvel: Array, force: Array) -> Array:
    """Return qacc, (nv,), under applied generalized forces."""
    model.opt.disableflags |= FREE_FLIGHT
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos, qvel, force
    with captured_warnings(mujoco):
        mujoco.mj_forward(model, data)
    return data.qacc.copy()


def inverse(model: mujoco.MjModel, qpos: Array, qvel: Array, qacc: Array) -> Array:
    """Return the generalized forces, (nv,), of an acceleration."""
    model.opt.disableflags |= FREE_FLIGHT
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = qpos, qvel, qacc
    with captured_warnings(mujoco):
        mujoco.mj_inverse(model, data)
    return data.qfrc_inverse.copy()


def smooth_terms(model: mujoco.MjModel, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    """Return (M, f): the inertia matrix, (nv, nv), and passive forces minus bias forces, (nv,)."""
    model.opt.disableflags |= FREE_FLIGHT
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    with captured_warnings(mujoco):
        mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M, data.qfrc_passive - data.qfrc_bias
