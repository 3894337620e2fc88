"""Edited robots: a builder that starts from a robot and changes, adds, removes and renames its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from legged.arguments import instance, known_name, number, real_array, rounded_array, text
from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.base import Base
from legged.robot.construction.builder import RobotBuilder
from legged.robot.construction.graph import check_names, links_of
from legged.robot.inertia import Inertia
from legged.robot.joint import Connection, Coupling, Fixed
from legged.robot.link import Link
from legged.robot.physics import NUMBERS, JointPhysics, PerFreedom, Rotor, by_stage
from legged.robot.placement import Vector, placement
from legged.robot.robot import Robot
from legged.robot.shapes import Material, Shape, Sphere
from legged.spatial import Array

_Limit = Annotated[PerFreedom | None, Any]  # infinite without a limit; read by `change_joint`


@checked
class RobotEditor(RobotBuilder):
    """A builder that holds the links, joints and couplings of a robot; `build()` returns the edited robot.

    editor = legged.RobotEditor(robot)  # or robot.edit()
    editor.change_link("trunk", mass=12.0).change_joint("knee", damping=0.2, effort=80.0)
    editor.add(legged.Fixed("mount"), legged.Link("box", legged.box_inertia(3.0, (0.2, 0.2, 0.1))), to="trunk")
    heavy = editor.build()

    The methods of `RobotBuilder` add parts; those of this class change, rename and remove them. Each returns the
    editor. The robot that the editor starts from is not changed.
    """

    def __init__(self, robot: Robot) -> None:
        instance("robot", robot, Robot, "a legged.Robot")
        links = links_of(robot)
        super().__init__(robot.name, links[0], base=robot.base, gravity=robot.gravity)
        self._links = links
        self._connections = list(robot.connections)
        self._couplings = [Coupling(f.name, f.master, f.ratio, f.offset) for f in robot.followers]
        self._order = [joint.name for joint in robot.joints]
        heads = self._heads()
        self._modules = [[name for name in module.links if name in heads] for module in robot.modules]

    def change_robot(
        self, *, name: str | None = None, gravity: Vector | None = None, base: Base | None = None
    ) -> RobotEditor:
        """Change properties of the whole robot, and return the editor; None keeps the present value.

        Args:
            name: Name of the robot.
            gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
            base: The degrees of freedom of the base.

        Raises:
            ArgumentError, ShapeError, NotFiniteError: For values of the wrong form.
        """
        self.gravity = self.gravity if gravity is None else rounded_array("gravity", gravity, (3,))
        self.name = self.name if name is None else name
        self.base = self.base if base is None else base
        return self

    def change_link(
        self,
        name: str,
        *,
        mass: float | None = None,
        center: Vector | None = None,
        tensor: Vector | Sequence[Sequence[float]] | None = None,
        inertia: Inertia | None = None,
        contacts: Mapping[str, Vector | Sphere] | None = None,
        shapes: Sequence[Shape] | None = None,
        material: Material | None = None,
        is_foot: bool | None = None,
    ) -> RobotEditor:
        """Change a link, and return the editor; None keeps the present value.

        Args:
            name: Name of the link.
            mass: [kg]. Without `tensor`, the inertia tensor changes in proportion, as for another density.
            center: Link origin to center of mass, (3,), [m], link axes. The tensor about it does not change.
            tensor: Inertia about the center of mass, (3, 3) or its diagonal (3,), [kg m^2], link axes.
            inertia: All inertial parameters, instead of the three above.
            contacts: All contact points of the link, name -> position (3,), [m], link axes, or a `Sphere`.
            shapes: All collision shapes of the link.
            material: Material of contact points and shapes without one.
            is_foot: Whether the robot stands on its contact points.

        Raises:
            UnknownNameError: For an unknown link. InertiaError: For physically impossible parameters.
            ArgumentError, ShapeError, NotFiniteError, DefinitionError: For values of the wrong form.
        """
        index = self._link_index(name)
        link = self._links[index]
        what = f"link {name!r}"
        parts = {"mass": mass, "center": center, "tensor": tensor}
        given = [part for part, value in parts.items() if value is not None]
        if inertia is not None and given:
            raise DefinitionError(f"{what}: give either inertia, which contains {', '.join(given)}, or those alone")
        if inertia is not None:
            link = replace(link, inertia=inertia)
        elif given:
            with errors_of(what):
                link = replace(link, inertia=_inertia(what, link.inertia, mass, center, tensor))
        if contacts is not None:
            link = replace(link, contacts={point: _contact(point, at) for point, at in contacts.items()})
        if shapes is not None:
            link = replace(link, shapes=tuple(shapes))
        if material is not None:
            link = replace(link, material=material)
        if is_foot is not None:
            link = replace(link, is_foot=is_foot)
        self._links[index] = link
        return self

    def change_contact(self, name: str, at: Vector | Sphere) -> RobotEditor:
        """Change a contact point, and return the editor.

        Args:
            name: Name of the contact point.
            at: Its position, (3,), [m], axes of its link; or a `Sphere` for a round foot.

        Raises:
            UnknownNameError: For an unknown contact point. ShapeError, NotFiniteError: For a wrong position.
        """
        known_name("contact point", name, [point for link in self._links for point in link.contacts])
        index = next(i for i, link in enumerate(self._links) if name in link.contacts)
        link = self._links[index]
        self._links[index] = replace(link, contacts={**link.contacts, name: _contact(name, at)})
        return self

    def change_joint(
        self,
        name: str,
        *,
        damping: PerFreedom | None = None,
        friction: PerFreedom | None = None,
        armature: PerFreedom | None = None,
        stiffness: PerFreedom | None = None,
        rest: PerFreedom | None = None,
        lower: _Limit = None,
        upper: _Limit = None,
        effort: _Limit = None,
        speed: _Limit = None,
        stop_stiffness: PerFreedom | None = None,
        restitution: PerFreedom | None = None,
        rotor: Rotor | None = None,
        physics: JointPhysics | None = None,
        at: Vector | None = None,
        rotation: Array | None = None,
    ) -> RobotEditor:
        """Change a joint, and return the editor; None keeps the present value.

        Args:
            name: Name of the joint.
            damping, friction, armature, stiffness, rest, lower, upper, effort, speed: As in `JointPhysics`: one number,
                or one per degree of freedom; an infinite limit is no limit.
            stop_stiffness, restitution, rotor: As in `JointPhysics`.
            physics: All of them at once; the others given beside it replace its values.
            at: Parent link's origin to the joint, (3,), [m], parent link axes.
            rotation: A rotation matrix, (3, 3), joint axes to parent link axes.

        Raises:
            UnknownNameError: For an unknown joint.
            DefinitionError: For values that are out of range or do not fit the joint.
            ArgumentError: For values that are no numbers.
        """
        known_name("joint", name, [c.joint.name for c in self._connections])
        index = next(i for i, c in enumerate(self._connections) if c.joint.name == name)
        c, what = self._connections[index], f"joint {name!r}"
        values = damping, friction, armature, stiffness, rest, lower, upper, effort, speed, stop_stiffness, restitution
        changes: dict[str, Any] = {
            field: real_array(f"{field} of {what}", value)
            for field, value in zip(NUMBERS, values, strict=True)
            if value is not None
        }
        if rotor is not None:
            changes["rotor"] = rotor
        if changes or physics is not None:
            if isinstance(c.joint, Fixed):
                raise DefinitionError(f"{what} is fixed and does not move: it has no {', '.join(changes) or 'physics'}")
            start = c.joint.physics if physics is None else physics
            with errors_of(what):
                changed = replace(start, **changes)
            by_stage(name, changed, c.joint.stages)
            c = replace(c, joint=replace(c.joint, physics=changed))
        if at is not None or rotation is not None:
            position = c.start.position if at is None else rounded_array(f"position of {what}", at, (3,))
            matrix = c.start.rotation if rotation is None else rounded_array(f"rotation of {what}", rotation, (3, 3))
            c = replace(c, start=placement(what, position, matrix))
        self._connections[index] = c
        return self

    def rename(
        self,
        *,
        links: Mapping[str, str] | None = None,
        joints: Mapping[str, str] | None = None,
        contacts: Mapping[str, str] | None = None,
    ) -> RobotEditor:
        """Rename links, joints and contact points, all at once, and return the editor.

        Args:
            links, joints, contacts: Old name -> new name.

        Raises:
            UnknownNameError: For an unknown old name.
            DefinitionError: For a new name that another part has, or an empty one.
        """
        link = _renaming("link", links, [link.name for link in self._links])
        joint = _renaming("joint", joints, [c.joint.name for c in self._connections])
        contact = _renaming("contact point", contacts, [name for each in self._links for name in each.contacts])
        renamed_links = [
            replace(each, name=link(each.name), contacts={contact(name): at for name, at in each.contacts.items()})
            for each in self._links
        ]
        connections = [
            replace(c, joint=replace(c.joint, name=joint(c.joint.name)), parent=link(c.parent), child=link(c.child))
            for c in self._connections
        ]
        couplings = [replace(c, follower=joint(c.follower), master=joint(c.master)) for c in self._couplings]
        self._root, self._links = link(self._root), renamed_links
        self._connections, self._couplings = connections, couplings
        self._order = [joint(name) for name in self._order]
        self._modules = [[link(name) for name in module] for module in self._modules]
        return self

    def remove(self, *links: str) -> RobotEditor:
        """Remove links and everything outward of them, and return the editor.

        Raises:
            UnknownNameError: For an unknown link.
            DefinitionError: For the base, and if a remaining joint is coupled to a removed one.
        """
        removed: set[str] = set()
        for name in links:
            self._link_index(name)
            if name == self._root:
                raise DefinitionError(f"{name!r} is the base of robot {self.name!r} and cannot be removed")
            removed.add(name)
        while outward := {c.child for c in self._connections if c.parent in removed} - removed:
            removed |= outward
        return self.set_tree(
            [link for link in self._links if link.name not in removed],
            [c for c in self._connections if c.child not in removed],
        )

    def set_tree(self, links: Sequence[Link], connections: Sequence[Connection]) -> RobotEditor:
        """Replace all links and joints, base first, and return the editor; couplings of removed joints are removed.

        Raises:
            DefinitionError: If a remaining joint is coupled to one that does not move any more.
        """
        moving = {c.joint.name: c for c in connections if not isinstance(c.joint, Fixed)}
        couplings = [c for c in self._couplings if c.follower in moving]
        for c in couplings:
            if c.master not in moving:
                raise DefinitionError(
                    f"joint {c.follower!r} follows {c.master!r}, which is removed: remove link "
                    f"{moving[c.follower].child!r} as well"
                )
        self._links, self._connections, self._couplings = list(links), list(connections), couplings
        return self

    def build(self, modules: Sequence[Sequence[str]] | None = None, order: Sequence[str] | None = None) -> Robot:
        """Return the edited robot; arguments and errors as in `RobotBuilder.build`, with other defaults.

        Args:
            modules: The partition into modules. By default the present one if links and moving joints form the same
                tree as before, otherwise the partition into the longest serial chains.
            order: Names of the joints in the order of q and v. By default the joints of the robot keep their order, and
                new joints follow in the order of their definition.
        """
        if modules is None and {name for module in self._modules for name in module} == self._heads():
            modules = self._modules
        if order is None:
            followers = {c.follower for c in self._couplings}
            names = [c.joint.name for c in self._connections if not isinstance(c.joint, Fixed)]
            free = [name for name in names if name not in followers]
            order = [name for name in self._order if name in free]
            order += [name for name in free if name not in order]
        return super().build(modules, order)

    def _heads(self) -> set[str]:
        """Return the names of the base link and of the links that move relative to their parents."""
        return {self._root, *(c.child for c in self._connections if not isinstance(c.joint, Fixed))}

    def _link_index(self, name: str) -> int:
        names = [link.name for link in self._links]
        return names.index(known_name("link", name, names))


def _inertia(what: str, old: Inertia, mass: float | None, center: Vector | None, tensor: Any) -> Inertia:
    """Return inertial parameters with some of them changed; see `RobotEditor.change_link`."""
    new_mass = old.mass if mass is None else number(f"mass of {what}", mass, "kg", least=0.0)
    new_center = old.center if center is None else rounded_array(f"center of {what}", center, (3,))
    if tensor is not None:
        return Inertia(new_mass, new_center, rounded_array(f"tensor of {what}", tensor))
    scale = new_mass / old.mass if mass is not None and old.mass else 1.0
    return Inertia(new_mass, new_center, scale * np.asarray(old.tensor), old.checked)


def _contact(name: str, at: Any) -> Vector | Sphere:
    return at if isinstance(at, Sphere) else rounded_array(f"contact point {name!r}", at, (3,))


@contextmanager
def errors_of(what: str) -> Iterator[None]:
    """Put the name of a part before the message of a DefinitionError that the block raises."""
    try:
        yield
    except DefinitionError as error:
        raise type(error)(f"{what}: {error}") from None


def _renaming(what: str, new_names: Mapping[str, str] | None, names: Sequence[str]) -> Callable[[str], str]:
    """Return the function from old to new names after checking both."""
    if new_names is None:
        return lambda name: name
    for old, new in new_names.items():
        known_name(what, old, names)
        if not text(f"the new name of {what} {old!r}", new):
            raise DefinitionError(f"{what} {old!r} needs a name that is not empty")
    check_names(what, [new_names.get(name, name) for name in names])
    return lambda name: new_names.get(name, name)
