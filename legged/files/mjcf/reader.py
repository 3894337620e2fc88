"""Read MJCF into a description, with MuJoCo's compiler, which resolves defaults, includes and inertias from shapes.

Links are MuJoCo's bodies with their frames. Several joints of one body become a chain with massless links. A joint away
from the origin of its body moves a massless link, to which the body is fixed. A joint's `ref` offsets the joint frame,
so that q equals qpos. Sites become massless fixed links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from legged.errors import DefinitionError, FileError
from legged.files import reading
from legged.files.description import IDENTITY, SOLIDS, Description, JointEntry, LinkEntry, Mimic, Shape
from legged.files.mjcf import roots
from legged.files.mjcf.limits import check_limits
from legged.files.mjcf.physics import FREE, PhysicsReader, unconverted_elements
from legged.files.urdf.schema import LARGEST, LARGEST_OF_PHYSICS, MOST_LINKS
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.robot.shapes import Material
from legged.rotations import quaternion_exp, quaternion_matrix
from legged.spatial import Array


@contextmanager
def captured_warnings(mujoco: Any) -> Iterator[list[str]]:
    """Collect the warnings of the module `mujoco` in a list instead of a file in the current folder."""
    words: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(words.append)
    try:
        yield words
    finally:
        mujoco.set_mju_user_warning(before)


KINDS = ("free", "ball", "prismatic", "revolute")
"""Joint kinds by value of mjtJoint."""
SHAPES = {2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 7: "mesh"}
"""Shape kinds by value of mjtGeom."""
_NUMBERS = {
    "body": ("pos", "quat", "mass", "inertia", "ipos", "iquat"),
    "jnt": ("pos", "axis", "stiffness"),
    "dof": ("damping", "armature", "frictionloss"),
    "geom": ("pos", "quat", "size"),
    "site": ("pos", "quat"),
    "actuator": ("gear",),
    "eq": ("data",),
}
"""Fields of a model that must be finite and must not exceed `LARGEST`, or `LARGEST_OF_PHYSICS`, in SI units."""


def read(
    path: str | Path, root: str | None = None, base: str | None = None, content: bytes | None = None
) -> Description:
    """Return the description in an MJCF file.

    The root is the robot's body with a free joint or with slides and hinges that move it as a base, otherwise the
    world, see `legged.files.mjcf.roots.choose_root`.

    Args:
        path: Path of the file.
        root: Name of the root body on the world, or "world" for all moving bodies; None to find it.
        base: Kind of base that is asked for; slides and hinges of a base remain joints for "fixed".
        content: Content of the file, where it has been read.

    Raises:
        FileError: MuJoCo is not installed, its compiler rejects the file, for example because of a missing mesh, the
            model is too large, or `root` does not name a robot.
    """
    model, notes = compiled(path, content)
    return describe(model, str(path), notes, root, base)


def compiled(path: str | Path, content: bytes | None = None) -> tuple[Any, tuple[str, ...]]:
    """Return (the `mujoco.MjModel` of a file, the warnings of its compiler). Arguments and errors as `read`."""
    source = str(path)
    content = reading.read_bytes(path) if content is None else content
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError as error:
        raise FileError(source, "reading MJCF needs MuJoCo's compiler: pip install 'legged[mujoco]'") from error
    check_limits(content, source)
    with captured_warnings(mujoco) as warnings:
        try:
            model = mujoco.MjModel.from_xml_path(source)
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            raise FileError(source, _compiler_error(str(error))) from error
    return model, tuple(f"MuJoCo's compiler warns: {words}" for words in warnings)


def body_names(model: Any) -> list[str]:
    """Return the names of links for the bodies of a compiled model, with generated names for unnamed bodies."""
    return _names([model.body(i).name for i in range(model.nbody)], "body")[0]


def _compiler_error(words: str) -> str:
    words = " ".join(words.split())
    missing = "opening file" in words or "resource not found" in words.lower()
    hint = "; it compiles a model only with its meshes and textures, so put them where the file looks" * missing
    return f"MuJoCo's compiler rejects the file: {words}{hint}"


def joint_names(model: Any) -> list[str]:
    """Return the names of the joints of a compiled model, with generated names for unnamed joints."""
    return _names([model.joint(i).name for i in range(model.njnt)], "joint")[0]


def describe(
    model: Any, source: str, notes: tuple[str, ...] = (), root: str | None = None, base: str | None = None
) -> Description:
    """Return the description of a compiled model (`mujoco.MjModel`); `notes` are listed in `lost`.

    Args and errors as `read`.
    """
    if model.nbody == 1:
        raise FileError(source, "has no bodies; a robot has one at least")
    if model.nbody > MOST_LINKS:
        raise FileError(source, f"has {model.nbody} bodies; a robot has at most {MOST_LINKS} links")
    _check_numbers(model, source)
    try:
        model.names.decode()
    except UnicodeDecodeError as error:
        raise FileError(source, "has names that are not UTF-8; save it as such") from error
    return _Reader(model, source, root, base).description(notes)


def _check_numbers(model: Any, source: str) -> None:
    fields = {f"{of}_{what}": getattr(model, f"{of}_{what}") for of, all_of in _NUMBERS.items() for what in all_of}
    fields |= {"qpos0": model.qpos0, "qpos_spring": model.qpos_spring, "gravity": model.opt.gravity}
    for name, values in fields.items():
        largest = LARGEST_OF_PHYSICS if name.startswith("dof") else LARGEST
        if not (np.abs(values) <= largest).all():
            raise FileError(
                source, f"MuJoCo's {name} contains a number that is not finite or exceeds {largest:g} in SI units"
            )
        if name.endswith("quat") and not (np.linalg.norm(values, axis=-1) > 0.5).all():
            raise FileError(source, f"MuJoCo's {name} holds a quaternion of length zero; write 1 0 0 0 for no rotation")


class _Reader:
    """Collects the links and joints of a model, body by body; MuJoCo numbers parents before children."""

    def __init__(self, model: Any, source: str, root: str | None, base: str | None) -> None:
        self.model, self.source = model, source
        self.physics = PhysicsReader(model)
        self.bodies, self.new_link = _names([model.body(i).name for i in range(model.nbody)], "body")
        self.moving, self.new_joint = _names([model.joint(i).name for i in range(model.njnt)], "joint")
        self.links: list[LinkEntry] = []
        self.joints: list[JointEntry] = []
        self.root, self.trees = roots.choose_root(model, self.bodies, root, source)
        chain = roots.root_chain(model, self.root) if self.root else None
        self.kind = "floating" if self.root and chain is None else ""
        self.choices: list[str] = []
        if chain is not None:
            self._choose_base(chain, base)
        elif not self.root and len(self.trees) == 1 and root != roots.WORLD:
            joints = roots.other_base_joints(model, self.trees[0])
            if joints:
                self._keep_joints(joints, self.trees[0], "they are neither a floating nor a planar base")

    def _choose_base(self, chain: roots.RootChain, base: str | None) -> None:
        """Take slides and hinges as the base if they can be one, or keep them as joints on the world."""
        why = "the base is fixed" if base == "fixed" else roots.why_no_base(self.model, chain)
        if why:
            self._keep_joints(chain.joints, self.root, why)
            self.root = 0
            return
        self.kind = chain.kind
        listed = ", ".join(repr(self.moving[j]) for j in chain.joints)
        self.choices.append(f"{listed} are the {chain.kind} base, {self.bodies[self.root]!r} the base link")

    def _keep_joints(self, joints: Sequence[int], body: int, why: str) -> None:
        listed = ", ".join(repr(self.moving[j]) for j in joints)
        self.choices.append(f"{listed} move {self.bodies[body]!r} on a fixed base, since {why}")
        self.kind = "joints"

    def description(self, notes: tuple[str, ...]) -> Description:
        model, root = self.model, self.root
        moving = {int(model.body_rootid[body]) for body in model.jnt_bodyid}
        others = sorted(moving - set(self.trees))
        within = [body for body in range(model.nbody) if self._belongs(int(model.body_rootid[body]), others)]
        if others:
            listed = ", ".join(repr(self.bodies[body]) for body in others)
            notes = (*notes, f"other moving bodies: {listed} (load with root= the name of one, or with root='world')")
        for body in within:
            if body != root:
                self._add_joints(body)
            self.links.append(self._link(body))
        for site in range(model.nsite):
            if model.site(site).name and model.site_bodyid[site] in within:
                self._site(site)
        mimics = dict(self._mimics())
        joints = tuple(replace(joint, mimic=mimics.get(joint.name)) for joint in self.joints)
        lost = (*notes, *unconverted_elements(model, self.physics, root, self.moving))
        gravity = model.opt.gravity.copy() if self.physics.has_gravity else np.zeros(3)
        name = model.names[: model.names.index(b"\0")].decode() or Path(self.source).stem
        return Description(
            name,
            self.source,
            self.bodies[root],
            tuple(self.links),
            joints,
            root != 0,
            lost,
            gravity,
            base=self.kind,
            base_physics=self._base_physics(),
            choices=tuple(self.choices),
        )

    def _base_physics(self) -> JointPhysics:
        """Return the armature and damping of the free joint of a floating base, zero without one."""
        if not self.root or self.model.jnt_type[self.model.body_jntadr[self.root]] != FREE:
            return JointPhysics()
        own = self.physics.of(int(self.model.body_jntadr[self.root]))
        return JointPhysics(own.damping, armature=own.armature)

    def _belongs(self, tree: int, others: list[int]) -> bool:
        """Return whether the bodies of a tree on the world belong to the robot."""
        return tree in self.trees if self.root else tree not in others

    def _add_joints(self, body: int) -> None:
        """Add the joints of a body, one after the other, with massless links between."""
        model, name = self.model, self.bodies[body]
        parent = self.bodies[model.body_parentid[body]]
        place = Placement(_matrix(model.body_quat[body]), model.body_pos[body].copy())
        first, end = int(model.body_jntadr[body]), int(model.body_jntadr[body] + model.body_jntnum[body])
        for joint in range(first, end):
            if KINDS[model.jnt_type[joint]] == "free":
                self.joints.append(self._joint(joint, parent, name, IDENTITY))
                return
            anchor = Placement(np.eye(3), model.jnt_pos[joint].copy())
            is_last = joint == end - 1 and not anchor.position.any()
            child = name if is_last else self.new_link(f"{name} ({self.moving[joint]})")
            self.joints.append(self._joint(joint, parent, child, place @ anchor))
            if is_last:
                return
            self.links.append(LinkEntry(child))
            parent, place = child, anchor.inverse()
        self._weld(f"{name} weld", parent, name, place)

    def _weld(self, joint: str, parent: str, child: str, place: Placement) -> None:
        self.joints.append(JointEntry(self.new_joint(joint), "fixed", parent, child, place.position, place.rotation))

    def _joint(self, joint: int, parent: str, child: str, place: Placement) -> JointEntry:
        """Return a joint with its frame offset by `ref`, so that its position equals qpos."""
        model, kind = self.model, KINDS[self.model.jnt_type[joint]]
        axis, ref = model.jnt_axis[joint].copy(), float(model.qpos0[model.jnt_qposadr[joint]])
        if kind == "revolute":
            place = place @ Placement(quaternion_matrix(quaternion_exp(-ref * axis)), np.zeros(3))
        elif kind == "prismatic":
            place = place @ Placement(np.eye(3), -ref * axis)
        try:
            physics = self.physics.of(joint)
        except DefinitionError as error:
            raise FileError(self.source, f"joint {self.moving[joint]!r}: {error}") from error
        return JointEntry(self.moving[joint], kind, parent, child, place.position, place.rotation, axis, physics)

    def _link(self, body: int) -> LinkEntry:
        model = self.model
        R = _matrix(model.body_iquat[body])
        tensor = R @ np.diag(model.body_inertia[body]) @ R.T
        mass, center = float(model.body_mass[body]) or None, model.body_ipos[body].copy()
        shapes = tuple(self._shapes(body, collide=True))
        visuals = () if shapes else tuple(self._shapes(body, collide=False))
        return LinkEntry(self.bodies[body], mass, center, (tensor + tensor.T) / 2, shapes, visuals)

    def _shapes(self, body: int, collide: bool) -> Iterator[Shape]:
        """Yield the shapes of a body that collide, or those that are only drawn."""
        model = self.model
        first = int(model.body_geomadr[body])
        for geom in range(first, first + int(model.body_geomnum[body])):
            if bool(model.geom_contype[geom] or model.geom_conaffinity[geom]) == collide:
                shape = geom_shape(model, geom, model.geom_pos[geom].copy(), _matrix(model.geom_quat[geom]))
                if shape is not None:
                    yield shape

    def _site(self, site: int) -> None:
        model = self.model
        link = self.new_link(model.site(site).name)
        place = Placement(_matrix(model.site_quat[site]), model.site_pos[site].copy())
        self._weld(f"{link} site", self.bodies[model.site_bodyid[site]], link, place)
        self.links.append(LinkEntry(link))

    def _mimics(self) -> Iterator[tuple[str, Mimic]]:
        """Yield the mimic joints: q_1 - r_1 = a + b (q_2 - r_2), where r is `ref`."""
        model = self.model
        for equality in self.physics.couplings():
            follower, leader = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
            a, b = (float(x) for x in model.eq_data[equality, :2])
            r_1, r_2 = (float(model.qpos0[model.jnt_qposadr[joint]]) for joint in (follower, leader))
            yield self.moving[follower], Mimic(self.moving[leader], b, r_1 + a - b * r_2)


def geom_shape(model: Any, geom: int, position: Array, rotation: Array) -> Shape | None:
    """Return the shape of a geom; None for planes, height fields and signed distance fields.

    Args:
        model: Compiled model (`mujoco.MjModel`).
        geom: Index of the geom.
        position: Center of the geom, (3,), [m], in the axes of the shape's owner.
        rotation: A rotation matrix, (3, 3), from geom axes to these axes.
    """
    kind = SHAPES.get(int(model.geom_type[geom]))
    if kind is None:
        return None
    size, vertices = shape_size(kind, model.geom_size[geom]), geom_vertices(model, geom) if kind == "mesh" else None
    return Shape(kind, size, position, rotation, vertices, material=geom_material(model, geom))


def geom_material(model: Any, geom: int) -> Material:
    """Return the sliding friction and the priority of a geom as a material named after its friction.

    Args:
        model: Compiled model (`mujoco.MjModel`).
        geom: Index of the geom; one with `condim` 1 has no friction.
    """
    friction = float(model.geom_friction[geom, 0]) if model.geom_condim[geom] > 1 else 0.0
    return Material(f"friction {friction:g}", friction, priority=int(model.geom_priority[geom]))


def _names(given: list[str], what: str) -> tuple[list[str], Any]:
    """Return the names, with generated ones for unnamed elements, and a function that returns new unique names."""
    taken = set(given)

    def new(name: str) -> str:
        numbered = (f"{name} {number}" for number in count(2))
        unique = next(each for each in chain([name], numbered) if each not in taken)
        taken.add(unique)
        return unique

    return [name or new(f"{what} {number}") for number, name in enumerate(given)], new


def _matrix(quaternion: Array) -> Array:
    return quaternion_matrix(quaternion / np.linalg.norm(quaternion))


def geom_vertices(model: Any, geom: int) -> Array:
    """Return the vertices of the mesh of a geom of a compiled model, (n, 3), [m], geom axes."""
    mesh = int(model.geom_dataid[geom])
    first = int(model.mesh_vertadr[mesh])
    return model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])].astype(float)


def shape_size(kind: str, size: Array) -> tuple[float, ...]:
    """Return the size of a geom in the form of `Shape`.

    Args:
        kind: Kind of shape.
        size: Size of the geom in MuJoCo: half lengths along its axes, or radii, (3,), [m].
    """
    return (
        tuple(float(factor * x) for factor, x in zip(SOLIDS[kind].halves, size, strict=False)) if kind in SOLIDS else ()
    )
