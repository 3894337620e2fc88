"""Write robots as MJCF, MuJoCo's format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from legged.checked import checked
from legged.errors import ArgumentError, DefinitionError
from legged.files import embedded
from legged.files.description import IDENTITY, SOLIDS, Description, JointEntry, Shape
from legged.files.export_description import (
    describe_robot,
    format_numbers,
    format_vector,
    losses,
    warn_of_losses,
)
from legged.files.inertias import entry_inertia, inertia_fault, nearest_consistent
from legged.files.mjcf.equalities import ClosingEquality
from legged.files.mjcf.export_joints import difference, fit_one_body, is_plain_free, physics_attributes, write_joint
from legged.files.mjcf.scene import Scene, add_control, add_floor, geom_names, with_scene_shapes
from legged.output import write_file
from legged.robot.inertia import Inertia
from legged.robot.joint import Fixed
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.rotations import quaternion_of
from legged.spatial import Array

SMALLEST = 2e-14
"""Principal inertia, [kg m^2], added to thin rods, plates and point masses, which MuJoCo rejects."""
_ROUNDING = 1e-13  # of MuJoCo's principal inertias, relative to the largest one
DEEPEST = 495
"""Largest number of bodies inside each other; MuJoCo's reader refuses elements that are nested 500 times."""
_Unwritten = tuple[ET.Element, str, bool]  # body, link, and whether the body is that of the link alone


@checked
def save_mjcf(
    robot: Robot,
    path: str | Path,
    *,
    scene: bool = False,
    ground: Any = None,
    home: Array | None = None,
    kp: Any = None,
    kd: Any = None,
    time_step: float = 0.002,
) -> Path:
    """Write a robot to an MJCF file, and return its path; with `scene` a scene that MuJoCo simulates as it is.

    `legged.load` reads back the same robot to the last digit from a text in <custom>, which holds its description; see
    `legged.files.embedded`. Other programs, and `legged.load` once the file was changed, read the elements:

    - Joints of several degrees of freedom, and joints connected by massless links, become several joints of one body,
      as far as MuJoCo allows them there, named as in `save_urdf`.
    - Links fixed to others and contact points become sites; their mass is added to the body.
    - A floating base has a free joint named "base", with its armature and damping; a link named "world" gets a
      trailing underscore.
    - Limits of effort become `actuatorfrcrange`. There are no limits of speed, and without `scene` no actuators, no
      floor and no geoms of contact points.
    - Collision shapes and round feet become geoms, which collide with a floor but not with each other.
    - Free joints on a fixed, massless base stay free joints.
    - MuJoCo rejects bodies without mass and inertias that violate the triangle inequality: a moving body has at least
      the mass and principal inertias `SMALLEST`, and an inconsistent inertia becomes the nearest consistent one.

    A scene also has the floor, a geom named after each contact point (a sphere, of 1 mm at a point), with the
    coefficient of friction between it and the ground; motors with the limits of effort, or servos; a key frame "home";
    and options for friction without slow sliding. The geoms of contact points stand for the shapes of their links. On
    rigid ground contacts are as stiff as MuJoCo allows for the time step.

    A `legged.errors.FileWarning` names the joints that MuJoCo would simulate differently: those with a gyroscopic
    rotor, ball joints whose friction differs by axis or whose spring does not rest at the identity, and free joints
    elsewhere, which become three slides and a ball. Without description, that is for a joint or base of a user's
    own class, it lists what the elements lack as well. It also names changed inertias.

    `legged.loops.save_mjcf` writes a robot with closed loops.

    Args:
        robot: The robot. path: Path of the file, ending in .xml or .mjcf.
        scene: Whether to write a scene. The following arguments are for a scene.
        ground: A `legged.contact.Rigid` or `legged.ground.Ground`. Plane terrains become planes, a `HeightMap` a height
            field, other terrains one of 20 m by 20 m with a spacing of 0.05 m. None: a level floor with friction 0.8.
        home: Configuration of the key frame, (nq,). None: the standing posture of `controllers.home_of`
            with the feet on the ground; for a fixed base the joints as near to zero as their limits allow.
        kp, kd: Gains of position servos, one or (nj,) in the order of q, [N m/rad] or [N/m], and [N m s/rad] or
            [N s/m]. None: torque motors.
        time_step: Time step, [s].

    Raises:
        ArgumentError: Arguments for a scene without `scene=True`; a ground without terrain; negative gains.
        DefinitionError: A scene of a robot without geoms or standing posture; over 495 bodies inside each other.
        ShapeError, StateError: Gains or a configuration of the wrong form.
    """
    return write(robot, path, (), scene=scene, ground=ground, home=home, kp=kp, kd=kd, time_step=time_step)


def write(robot: Robot, path: str | Path, loops: Sequence[ClosingEquality], scene: bool, **options: Any) -> Path:
    """Write a robot and the equalities that close its loops; arguments and errors as in `save_mjcf`."""
    given = [name for name, value in options.items() if name != "time_step" and value is not None]
    if given and not scene:
        raise ArgumentError(f"{', '.join(given)}: only for a scene; pass scene=True")
    description, chosen = describe_robot(robot), Scene.of(robot, **options) if scene else None
    if chosen is not None:
        description = with_scene_shapes(description, chosen)
    writer = _Writer(description, is_exact=False, feet=geom_names(robot) if scene else {})
    for loop in loops:
        writer.close(loop)
    if chosen is not None:
        add_floor(writer, chosen)
        add_control(writer, chosen, description)
    root, lost = writer.root, writer.approximations
    if not embedded.add_to_mjcf(root, robot):
        lost += _losses(robot)
    warn_of_losses("MJCF", lost)
    ET.indent(root)
    return write_file(path, ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n", ".xml", ".mjcf")


def _losses(robot: Robot) -> list[str]:
    """Return the properties of a robot that the elements of MJCF cannot store."""
    lost = losses(robot)
    if any(np.isfinite(joint.definition.physics.speed).any() for joint in robot.joints):
        lost.append("limits of speed")
    fixed = {c.child for c in robot.connections if isinstance(c.joint, Fixed)}
    if any(robot.link(name).inertia.mass for name in fixed):
        lost.append("inertias of links fixed to others, which are added to the body")
    if robot.contacts:
        lost.append("contact points, which become sites (load with feet=[...])")
    return lost


def to_mjcf(robot: Robot) -> ET.Element:
    """Return the element <mujoco> with the dynamics of a robot, without shapes; see `save_mjcf`.

    Raises:
        DefinitionError: a robot that MuJoCo would simulate differently: with a free joint between links, a gyroscopic
            rotor, a ball joint whose friction differs by axis or whose spring does not rest at the identity.
    """
    return _Writer(describe_robot(robot), is_exact=True).root


class _BodyJoint(NamedTuple):
    """A joint of a body, and the frame of the body relative to the joint frame, all joints at zero."""

    joint: JointEntry
    place: Placement


class _Writer:
    """Writes the elements of an MJCF file.

    Unless `is_exact`, it also writes shapes, and collects in `approximations` what MJCF cannot express and what MuJoCo
    rejects.

    Attributes:
        root: The element <mujoco>. feet: Link of a contact point -> the name of its geom.
        places: Link -> the element of the body that carries it, and its frame in that of the body.
    """

    def __init__(self, description: Description, is_exact: bool, feet: Mapping[str, str] | None = None) -> None:
        self.is_exact, self.feet = is_exact, feet or {}
        self.approximations: list[str] = []
        self.places: dict[str, tuple[ET.Element, Placement]] = {}
        self.links = {link.name: link for link in description.links}
        self.joints_of: dict[str, list[JointEntry]] = {name: [] for name in self.links}
        for joint in description.joints:
            self.joints_of[joint.parent].append(joint)
        self.root = ET.Element("mujoco", model=description.name)
        ET.SubElement(self.root, "compiler", angle="radian", autolimits="true")
        gravity = np.zeros(3) if description.gravity is None else description.gravity
        ET.SubElement(self.root, "option", gravity=format_vector(gravity))
        body, first = ET.SubElement(self.root, "worldbody"), description.root
        if description.floating or self._group_inertia(first).mass:
            body = ET.SubElement(body, "body", name=_allowed(first))
        if description.floating:
            physics = physics_attributes(description.base_physics)
            kind = ("joint", {"type": "free"}) if physics else ("freejoint", {})
            ET.SubElement(body, kind[0], {"name": "base", **kind[1], **physics})
        unwritten, depth = [(body, first, True)], 0
        while unwritten:
            if (depth := depth + 1) > DEEPEST:
                words = f"more than {DEEPEST} bodies inside each other, which MuJoCo does not read; use save_urdf"
                raise DefinitionError(f"MJCF has for link {unwritten[0][1]!r} {words}")
            unwritten = [child for each in unwritten for child in self._fill(*each)]
        self.equality = ET.SubElement(self.root, "equality")
        for joint in description.joints:
            if joint.mimic is not None:
                curve = format_vector(np.array([joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0]))
                ET.SubElement(self.equality, "joint", joint1=joint.name, joint2=joint.mimic.joint, polycoef=curve)

    def asset(self, tag: str, **attributes: str) -> None:
        """Add an asset."""
        assets = self.root.find("asset")
        ET.SubElement(ET.SubElement(self.root, "asset") if assets is None else assets, tag, attributes)

    def close(self, loop: ClosingEquality) -> None:
        """Add an equality that closes a loop, between sites at the two frames."""
        ends = {}
        for number, link, frame in ((1, loop.parent, loop.on_parent), (2, loop.child, loop.on_child)):
            body, place = (
                (self.root.find("worldbody"), IDENTITY) if link is None else self.places.get(link, (None, frame))
            )
            if body is None:
                raise DefinitionError(
                    f"joint {loop.name!r} closes a loop at link {link!r}, which has no body of its own in MJCF, "
                    f"since it has no mass; close it at another link"
                )
            ends[f"site{number}"] = f"{loop.name} {number}"
            ET.SubElement(body, "site", {"name": ends[f"site{number}"], **_pose(place @ frame)})
        ET.SubElement(self.equality, loop.kind, {"name": loop.name, **ends})

    def _group_inertia(self, name: str) -> Inertia:
        """Return the inertia of a link and of the links fixed to it, in the frame of the link."""
        total = entry_inertia(self.links[name])
        for joint in self.joints_of[name]:
            if joint.is_fixed:
                total = total + self._group_inertia(joint.child).moved(joint.rotation, joint.position)
        return total

    def _has_moving_joint(self, name: str) -> bool:
        """Return whether the subtree of a link has a moving joint."""
        return any(not joint.is_fixed or self._has_moving_joint(joint.child) for joint in self.joints_of[name])

    def _fill(self, body: ET.Element, name: str, has_body: bool) -> list[_Unwritten]:
        """Write a link, the links fixed to it and the joints of its children; return the arguments for the children."""
        if has_body and body.tag == "body":
            self._inertial(body, self._group_inertia(name))
        self.places[name] = body, IDENTITY
        self._shapes(body, name, IDENTITY)
        unwritten = list[_Unwritten]()
        for joint in self.joints_of[name]:
            if joint.is_fixed and not self._has_moving_joint(joint.child):
                self._sites(body, joint, IDENTITY)
            else:
                unwritten.append(self._add_joints(body, joint))
        return unwritten

    def _sites(self, body: ET.Element, joint: JointEntry, outer: Placement) -> None:
        """Write a fixed link, and the links fixed to it, as sites."""
        place = outer @ Placement(joint.rotation, joint.position)
        ET.SubElement(body, "site", {"name": joint.child, **_pose(place)})
        self.places[joint.child] = body, place
        self._shapes(body, joint.child, place)
        for each in self.joints_of[joint.child]:
            self._sites(body, each, place)

    def _shapes(self, body: ET.Element, link: str, place: Placement) -> None:
        """Write the collision shapes of a link whose frame is at a place in a body."""
        for shape in () if self.is_exact else self.links[link].shapes:
            named = {"name": self.feet[link]} if link in self.feet else {}
            self.geom(body, shape.moved(place), {**named, "contype": "1", "conaffinity": "0", "mass": "0"})

    def geom(self, body: ET.Element, shape: Shape, attributes: dict[str, str]) -> None:
        """Write a shape in the frame of a body."""
        surface = {}
        if shape.material is not None:
            surface = {"friction": f"{shape.material.friction!r}", "priority": str(shape.material.priority)}
        at = _pose(Placement(shape.rotation, shape.position))
        ET.SubElement(body, "geom", {"type": shape.kind, **self._size(shape), **at, **attributes, **surface})

    def _size(self, shape: Shape) -> dict[str, str]:
        """Return the attribute for the size of a geom; the mesh of a hull is added to the assets."""
        if shape.vertices is not None:
            name = f"hull {len(self.root.findall('asset/mesh')) + 1}"
            self.asset("mesh", name=name, vertex=format_vector(shape.vertices.ravel()))
            return {"mesh": name}
        return {"size": format_vector(np.array(shape.size) / SOLIDS[shape.kind].halves)}

    def _add_joints(self, parent: ET.Element, joint: JointEntry) -> _Unwritten:
        """Write the body of a joint; massless links before it become further joints of the body."""
        chain, place = [joint], Placement(joint.rotation, joint.position)
        while self.links[joint.child].mass is None and len(self.joints_of[joint.child]) == 1:
            (following,) = self.joints_of[joint.child]
            if not fit_one_body([*chain, following]):
                break
            joint = following
            chain.append(joint)
            place = place @ Placement(joint.rotation, joint.position)
        body, end = ET.SubElement(parent, "body", {"name": _allowed(joint.child), **_pose(place)}), IDENTITY
        moved: list[_BodyJoint] = []
        for each in reversed(chain):
            moved.insert(0, _BodyJoint(each, end))
            end = Placement(each.rotation, each.position) @ end
        moved = [each for each in moved if not each.joint.is_fixed]
        is_free = parent.tag == "worldbody" and len(chain) == 1 and joint.kind == "free" and is_plain_free(joint)
        if is_free:
            ET.SubElement(body, "joint", {"name": joint.name, "type": "free", **physics_attributes(joint.physics)})
            return body, joint.child, True
        for each in moved:
            words = difference(each.joint)
            if words and self.is_exact:
                raise DefinitionError(f"joint {each.joint.name!r} {words}")
            if words:
                self.approximations.append(f"joint {each.joint.name!r} {words}")
            write_joint(body, each.joint, each.place.inverse())
        return body, joint.child, bool(moved)

    def _inertial(self, body: ET.Element, inertia: Inertia) -> None:
        """Write the inertia of a body, changed as little as MuJoCo's compiler demands."""
        name, fault = body.get("name"), inertia_fault(inertia)
        if self.is_exact:
            if inertia.mass:
                _inertial(body, inertia)
            return
        if inertia.mass < 0.0:
            raise DefinitionError(f"body {name!r} has the negative mass {inertia.mass:g} kg, which MuJoCo rejects")
        if inertia.mass < SMALLEST:
            self.approximations.append(f"the body {name!r} without mass, which gets {SMALLEST:g} kg")
            inertia = Inertia(SMALLEST, inertia.center, inertia.tensor, checked=False)
        consistent = nearest_consistent(inertia)
        change = np.abs(np.asarray(consistent.tensor) - inertia.tensor).max()
        if change > _ROUNDING * np.abs(inertia.tensor).max():
            words = fault.message if fault else f"it differs by up to {change:.3g} kg m^2"
            self.approximations.append(
                f"the inertia of body {name!r}, which becomes the nearest consistent one: {words}"
            )
            inertia = consistent
        _inertial(body, inertia)


def _allowed(name: str) -> str:
    return "world_" if name == "world" else name


def _inertial(body: ET.Element, inertia: Inertia) -> None:
    t = np.asarray(inertia.tensor)
    a, b, c = np.linalg.eigvalsh(t)
    margin = SMALLEST + _ROUNDING * c
    if a < margin or a + b - c < margin:
        t = t + margin * np.eye(3)
    six = format_vector(np.array([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]))
    center, mass = format_vector(np.asarray(inertia.center)), format_numbers(inertia.mass)
    ET.SubElement(body, "inertial", pos=center, mass=mass, fullinertia=six)


def _pose(place: Placement) -> dict[str, str]:
    return {"pos": format_vector(place.position), "quat": format_vector(quaternion_of(place.rotation))}
