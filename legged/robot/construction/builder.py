"""Definition of robots in code: links and joints in any order, and limbs that are attached several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.errors import DefinitionError, UnknownNameError
from legged.robot.base import Base, FloatingBase
from legged.robot.construction.assemble import assemble
from legged.robot.construction.graph import (
    GRAVITY,
    ORIGIN,
    LinkGraph,
    check_names,
    links_of,
    refuse_two_parents,
)
from legged.robot.joint import Connection, Coupling, Fixed, Joint
from legged.robot.link import Link
from legged.robot.placement import Placement, Vector, placement, vector3
from legged.robot.robot import Robot
from legged.rotations import euler_matrix
from legged.spatial import Array


@checked
class Limb:
    """A leg, an arm or a tail: a chain or tree of links and joints that can be attached to robots several times.

    leg = Limb().add(Revolute("hip", "-y"), thigh).add(Revolute("knee", "-y"), shank, at=(0, 0, -0.3))
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Joint, Link, str | None, Placement]] = []
        self._couplings: list[Coupling] = []

    def add(
        self, joint: Joint, link: Link, *, at: Vector = ORIGIN, rotation: Array | None = None, to: str | None = None
    ) -> Limb:
        """Add a link by a joint, and return the limb.

        Args:
            joint, link: Their names must be unique within the limb.
            at: Parent link's origin to the joint, (3,), [m], parent link axes. Omit it for the first joint.
            rotation: A rotation matrix, (3, 3), joint axes to parent link axes; the identity by default.
            to: Name of the parent link in this limb; the link added last by default.
        """
        names = [link.name for _, link, _, _ in self._parts]
        if to is not None and to not in names:
            raise UnknownNameError("link of this limb", to, names)
        parent = to if to is not None else (names[-1] if names else None)
        self._parts.append((joint, link, parent, placement(f"joint {joint.name!r}", at, rotation)))
        return self

    @classmethod
    def of(cls, robot: Robot, joint: Joint | None = None) -> Limb:
        """Return a robot, such as an arm from a file, as a limb that begins with its base link.

        Args:
            robot: The robot; the degrees of freedom of its base do not count.
            joint: Between the link to which the limb is attached and the base link; `Fixed("mount")` by default.
        """
        base, *others = links_of(robot)
        limb, link_of = cls(), {link.name: link for link in others}
        limb.add(Fixed("mount") if joint is None else joint, base)
        for c in robot.connections:
            limb._parts.append((c.joint, link_of[c.child], c.parent, c.start))
        limb._couplings += [Coupling(f.name, f.master, f.ratio, f.offset) for f in robot.followers]
        return limb

    def couple(self, follower: str, master: str, ratio: float = 1.0, offset: float = 0.0) -> Limb:
        """Couple one joint of the limb to another, and return the limb; see `RobotBuilder.couple`."""
        self._couplings.append(Coupling(follower, master, ratio, offset))
        return self

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """The couplings added so far."""
        return tuple(self._couplings)

    @property
    def parts(self) -> tuple[tuple[Joint, Link, str | None, Placement], ...]:
        """(joint, link, name of the parent link, pose of the joint's frame in the parent's) of each joint added."""
        return tuple(self._parts)


@checked
class RobotBuilder:
    """Collector of links, joints and limbs; `build()` checks them and returns the robot.

    builder = RobotBuilder("dog", Link("trunk", box_inertia(4.0, (1.0, 0.5, 0.0))), base=FloatingBase())
    builder.attach(leg, to="trunk", at=(0.5, 0.25, 0.0), prefix="front_left_")
    robot = builder.build()
    """

    def __init__(self, name: str, base_link: Link, *, base: Base | None = None, gravity: Vector = GRAVITY) -> None:
        """Start a robot.

        Args:
            name: Name of the robot.
            base_link: The link of module M_0.
            base: The degrees of freedom of the base; `FloatingBase()` by default.
            gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
        """
        self.name = name
        self.base = FloatingBase() if base is None else base
        if not isinstance(self.base, Base):
            raise DefinitionError(f"the base must be a Base such as FixedBase() or FloatingBase(), got {base!r}")
        self.gravity = vector3("gravity", gravity)
        self._root = base_link.name
        self._links: list[Link] = [base_link]
        self._connections: list[Connection] = []
        self._couplings: list[Coupling] = []

    def link(self, link: Link) -> RobotBuilder:
        """Add a link, which a call of `joint` connects before or after."""
        self._links.append(link)
        return self

    def joint(
        self, joint: Joint, *, parent: str, child: str, at: Vector = ORIGIN, rotation: Array | None = None
    ) -> RobotBuilder:
        """Connect two links by name; arguments as in `RobotBuilder.add`."""
        start = placement(f"joint {joint.name!r}", at, rotation)
        self._connections.append(Connection(joint, parent, child, start))
        return self

    def add(
        self, joint: Joint, link: Link, *, to: str, at: Vector = ORIGIN, rotation: Array | None = None
    ) -> RobotBuilder:
        """Add a link by a joint.

        Args:
            joint, link: Their names must be unique in the robot.
            to: Name of the parent link.
            at: Parent link's origin to the joint, (3,), [m], parent link axes.
            rotation: A rotation matrix, (3, 3), joint axes to parent link axes; the identity by default.
        """
        return self.joint(joint, parent=to, child=link.name, at=at, rotation=rotation).link(link)

    def attach(
        self, limb: Limb, *, to: str, at: Vector = ORIGIN, rotation: Array | None = None, prefix: str = ""
    ) -> RobotBuilder:
        """Attach a copy of a limb with a prefix before its names (links, joints, contacts).

        Args:
            limb: The limb.
            to: Name of the parent link.
            at: Parent link's origin to the limb's first joint, (3,), [m], parent link axes.
            rotation: A rotation matrix, (3, 3), limb axes to parent link axes; the identity by default.
            prefix: Put before every name of the limb.
        """
        mount = placement(f"limb {prefix!r}", at, rotation)
        links, connections = list[Link](), list[Connection]()
        for joint, link, parent, start in limb.parts:
            named = replace(joint, name=prefix + joint.name)
            where = mount @ start if parent is None else start
            links.append(link.prefixed(prefix))
            above = to if parent is None else prefix + parent
            connections.append(Connection(named, above, prefix + link.name, where))
        self._couplings += [coupling.prefixed(prefix) for coupling in limb.couplings]
        self._links += links
        self._connections += connections
        return self

    def couple(self, follower: str, master: str, ratio: float = 1.0, offset: float = 0.0) -> RobotBuilder:
        """Couple one joint to another, q_follower = ratio * q_master + offset. The follower has no entries in q and v.

        Args:
            follower, master: Names of joints of one degree of freedom; the master may itself be a follower.
            ratio: Not zero; in the units of the two joints. offset: [rad] or [m].
        """
        self._couplings.append(Coupling(follower, master, ratio, offset))
        return self

    def build(self, modules: Sequence[Sequence[str]] | None = None, order: Sequence[str] | None = None) -> Robot:
        """Return the robot.

        Args:
            modules: The partition into modules as lists of link names, base first (it may be omitted); by default the
                longest serial chains.
            order: Names of all moving joints that are not coupled to another, in the order of q and v; by default
                module by module, parent before child.

        Raises:
            DefinitionError: For duplicate names, cycles, disconnected links, two roots, a massless last link, a
                motion without inertia, an order that omits joints.
            UnknownNameError: For a joint to an unknown link, or an unknown joint in `order`.
            ModuleError: For a partition that violates the rules of modules.
        """
        return assemble(self._graph(), modules, order)

    def _graph(self) -> LinkGraph:
        """Return the graph of the robot, or raise an error for unknown links and double couplings."""
        names = [link.name for link in self._links]
        check_names("link", names)
        known, joined = set(names), dict[tuple[str, str], str]()
        for c in self._connections:
            for end in (c.parent, c.child):
                if end not in known:
                    raise UnknownNameError("link", end, names)
            if c.child == self._root:
                raise DefinitionError(
                    f"joint {c.joint.name!r} makes the base {self._root!r} a child of {c.parent!r}: that closes a "
                    f"cycle; the base is the root"
                )
            if (c.parent, c.child) in joined:
                refuse_two_parents(c.child, joined[c.parent, c.child], c.joint.name)
            joined[c.parent, c.child] = c.joint.name
        couplings: dict[str, Coupling] = {}
        joints = [c.joint.name for c in self._connections]
        for coupling in self._couplings:
            known_name("joint", coupling.follower, joints)
            if coupling.follower in couplings:
                masters = f"both {couplings[coupling.follower].master!r} and {coupling.master!r}"
                raise DefinitionError(f"joint {coupling.follower!r} follows {masters}")
            couplings[coupling.follower] = coupling
        return LinkGraph.of(self.name, self.base, self.gravity, self._links, self._connections, couplings)


@checked
def rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Return the rotation matrix, (3, 3), of roll, pitch and yaw [rad] about fixed axes, as in URDF."""
    return euler_matrix("zyx", np.array([yaw, pitch, roll]))
