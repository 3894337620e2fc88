"""What an MJCF model has and a robot of ours does not carry, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from legged.files.mjcf_physics import BALL, FREE, Physics

_EQUALITIES = {0: "connect", 1: "weld", 2: "joint", 3: "tendon", 7: "distance"}  # mjtEq
_NO_SHAPE = {1: "hfield", 4: "ellipsoid", 8: "sdf"}  # mjtGeom
_COUNTED = {
    "ntendon": "tendons: their springs, dampers, limits and couplings",
    "nflex": "flexible bodies",
    "nskin": "skins",
    "nmocap": "motion-capture bodies, which stand still",
    "nplugin": "plugins",
    "nexclude": "pairs of bodies that do not collide",
    "npair": "contact pairs",
    "nsensor": "sensors",
    "nkey": "keyframes",
}


def lost_elements(model: Any, physics: Physics, root: int, joint_names: list[str]) -> Iterator[str]:
    """Yield what is lost; `root` is the body at the root, 0 for the world."""
    if root:
        yield from _around(model, root)
    yield from _equalities(model, physics, joint_names)
    yield from _actuators(model, physics)
    for joint, name in enumerate(joint_names):
        yield from _of_joint(model, joint, name)
    for field, words in _COUNTED.items():
        if getattr(model, field, 0):
            yield f"{words} ({getattr(model, field)})"
    floats = np.flatnonzero(model.body_gravcomp)
    if floats.size:
        yield f"gravity compensation of bodies ({floats.size})"
    if model.opt.density or model.opt.viscosity:
        yield f"the fluid around it: density {model.opt.density:g} kg/m^3, viscosity {model.opt.viscosity:g} Pa s"
    for kind, word in _NO_SHAPE.items():
        count = int(np.count_nonzero((model.geom_type == kind) & ((model.geom_contype | model.geom_conaffinity) != 0)))
        if count:
            yield f"collision shapes of the kind {word} ({count})"


def _around(model: Any, root: int) -> Iterator[str]:
    if model.body_geomnum[0]:
        yield f"shapes of the world, floor and scenery ({model.body_geomnum[0]})"
    others = [i for i in range(1, model.nbody) if model.body_rootid[i] != root]
    if others:
        yield f"bodies of the world that do not move ({len(others)})"


def _equalities(model: Any, physics: Physics, joint_names: list[str]) -> Iterator[str]:
    carried = set(physics.couplings())
    for i in range(model.neq):
        if i in carried or not model.eq_active0[i]:
            continue
        kind, name = int(model.eq_type[i]), model.equality(i).name or f"number {i}"
        if _EQUALITIES.get(kind) != "joint":
            hint = " (legged.loops.load makes a loop of it)" if kind in (0, 1) else ""
            yield f"equality {name!r} of the kind {_EQUALITIES.get(kind, 'flex')}{hint}"
        elif model.eq_obj2id[i] < 0:
            yield f"equality {name!r}, which holds joint {joint_names[model.eq_obj1id[i]]!r} where it is"
        else:
            yield f"equality {name!r} of two joints, a curve"


def _actuators(model: Any, physics: Physics) -> Iterator[str]:
    elsewhere = len(model.actuator_trntype) - len(physics.actuators)
    if elsewhere:
        yield f"actuators on tendons, sites, bodies and orientations ({elsewhere})"
    servos = sum(not actuator.is_motor for actuator in physics.actuators)
    if servos:
        yield f"gains and dynamics of actuators that are no plain motors ({servos})"
    ranges = [model.actuator_forcerange[i] for i in np.flatnonzero(model.actuator_forcelimited)]
    ranges += [model.jnt_actfrcrange[i] for i in np.flatnonzero(model.jnt_actfrclimited)]
    lopsided = sum(abs(low + high) > 1e-9 * abs(high) for low, high in ranges)
    if lopsided:
        yield f"force limits that differ by direction, of which the larger is taken ({lopsided})"


def _of_joint(model: Any, joint: int, name: str) -> Iterator[str]:
    kind, first = int(model.jnt_type[joint]), int(model.jnt_dofadr[joint])
    dofs = slice(first, first + (6 if kind == FREE else 3 if kind == BALL else 1))
    if kind == FREE and any(
        getattr(model, f"dof_{what}")[dofs].any() for what in ("damping", "armature", "frictionloss")
    ):
        yield f"damping, armature and friction of free joint {name!r}"
    if kind == FREE and model.jnt_stiffness[joint]:
        yield f"the spring of free joint {name!r}"
    if kind == BALL and model.jnt_limited[joint]:
        yield f"the stop of ball joint {name!r}"
    for field, words in (("jnt_stiffnesspoly", "spring"), ("dof_dampingpoly", "damper")):
        which = joint if field.startswith("jnt") else dofs
        if hasattr(model, field) and getattr(model, field)[which].any():
            yield f"the part of joint {name!r}'s {words} that is not linear"
    if hasattr(model, "jnt_springyield") and np.any(model.jnt_plasticadr[joint] >= 0):
        yield f"the yielding of joint {name!r}'s spring"
