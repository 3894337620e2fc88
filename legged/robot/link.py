"""What a user names: links, and where the definition places them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from legged.errors import DefinitionError
from legged.robot.given import vector3
from legged.robot.inertia import Inertia, Vector
from legged.robot.shapes import Shape, Sphere
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part of a robot.

    Attributes:
        name: Unique in the robot.
        inertia: What it weighs; a link without one is massless.
        contacts: What may touch the ground, name -> a point's position (3,), [m], link axes, or a `Sphere` where the
            foot is round. A limb's prefix is put before the names when it is attached.
        shapes: What may touch other bodies of a scene, see `legged.contact`.
    """

    name: str
    inertia: Inertia = field(default_factory=Inertia)
    contacts: Mapping[str, Vector | Sphere] = field(default_factory=dict)
    shapes: Sequence[Shape] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise DefinitionError("a link needs a name")
        points = {
            name: p if isinstance(p, Sphere) else vector3(f"contact point {name!r} of link {self.name!r}", p)
            for name, p in self.contacts.items()
        }
        object.__setattr__(self, "contacts", points)
        object.__setattr__(self, "shapes", _shapes(self))

    def prefixed(self, prefix: str) -> Link:
        points = {prefix + name: point for name, point in self.contacts.items()}
        return Link(prefix + self.name, self.inertia, points, self.shapes)


def _shapes(link: Link) -> tuple[Shape, ...]:
    for shape in link.shapes:
        if not isinstance(shape, Shape):
            raise DefinitionError(f"a shape of link {link.name!r} must be a Sphere or a Box, got {shape!r}")
    return tuple(link.shapes)


@dataclass(frozen=True, eq=False)
class PlacedLink:
    """A link of a finished robot, and where it sits in its computational body.

    Attributes:
        name, inertia: As defined, in the link's own axes.
        index: Its place in `robot.links`.
        body: Index of the body that carries it in `robot.bodies`; links joined by fixed joints share one.
        rotation: (3, 3), turns link components into body components.
        position: Body origin to link origin, (3,), [m], body axes.
        shapes: What may touch other bodies, in the link's own axes.
    """

    name: str
    inertia: Inertia
    index: int
    body: int
    rotation: Array
    position: Array
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A point of a link that may touch the ground: position (3,), [m], in the axes of link `link` (an index).

    With a radius, [m], it is the center of a round foot.
    """

    name: str
    link: int
    position: Array
    radius: float = 0.0

    @property
    def definition(self) -> Array | Sphere:
        """The point as `Link.contacts` has it."""
        return Sphere(self.radius, self.position) if self.radius else self.position
