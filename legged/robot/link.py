"""Links: user definitions with contact points and collision shapes, and links placed in a robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.inertia import Inertia
from legged.robot.placement import Vector, vector3
from legged.robot.shapes import SHAPES, Material, Shape, Sphere
from legged.spatial import Array


def moved_contact(at: Vector | Sphere, rotation: Array, position: Array) -> Array | Sphere:
    """Return a contact point, (3,), [m], or a spherical foot in an outer frame.

    Args:
        at: The point, (3,), [m], axes of this frame, or the sphere.
        rotation: A rotation matrix, (3, 3), from this frame to the outer frame.
        position: Origin of this frame, (3,), [m], outer axes.
    """
    return at.moved(rotation, position) if isinstance(at, Sphere) else rotation @ at + position


@checked
@dataclass(frozen=True, eq=False)
class Link:
    """A rigid link of a robot.

    Attributes:
        name: Unique in the robot.
        inertia: Its inertial parameters; massless by default.
        contacts: Contact points with the ground, name -> position (3,), [m], link axes, or a `Sphere` for a round
            foot. Attaching a limb puts the limb's prefix before the names.
        shapes: Collision shapes for contact with other bodies of a scene, see `legged.contact`.
        material: Material of contact points and shapes that have none of their own; None for that of the ground.
        is_foot: Whether the robot stands on the contact points, as on those of feet, heels and toes, and unlike on
            those of hands, knees and elbows. None: as `legged.algorithms.legs.leg_chains` decides.
    """

    name: str
    inertia: Inertia = field(default_factory=Inertia)
    contacts: Mapping[str, Vector | Sphere] = field(default_factory=dict)
    shapes: Sequence[Shape] = ()
    material: Material | None = None
    is_foot: bool | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise DefinitionError("a link needs a name")
        points = {
            name: p if isinstance(p, Sphere) else vector3(f"contact point {name!r} of link {self.name!r}", p)
            for name, p in self.contacts.items()
        }
        object.__setattr__(self, "contacts", points)
        for shape in self.shapes:
            if not isinstance(shape, Shape):
                names = ", ".join(kind.__name__ for kind in SHAPES.values())
                raise DefinitionError(f"a shape of link {self.name!r} must be one of {names}, got {shape!r}")
        object.__setattr__(self, "shapes", tuple(self.shapes))
        if self.is_foot and not self.contacts:
            raise DefinitionError(f"link {self.name!r} is a foot without contact points; give it contacts")

    def prefixed(self, prefix: str) -> Link:
        """Return the link with a prefix before its name and the names of its contact points."""
        points = {prefix + name: point for name, point in self.contacts.items()}
        return Link(prefix + self.name, self.inertia, points, self.shapes, self.material, self.is_foot)


@dataclass(frozen=True, eq=False)
class PlacedLink:
    """A link of a robot, with its pose in the body that carries it.

    Attributes:
        name, inertia: As defined, in the link's own axes.
        index: Index in `robot.links`.
        body: Index in `robot.bodies` of the body that carries it; links joined by fixed joints share one body.
        rotation: A rotation matrix, (3, 3), link to body components.
        position: Body origin to link origin, (3,), [m], body axes.
        shapes: Collision shapes, in the link's own axes.
        material: See `Link`.
        is_foot: See `Link`.
    """

    name: str
    inertia: Inertia
    index: int
    body: int
    rotation: Array
    position: Array
    shapes: tuple[Shape, ...] = ()
    material: Material | None = None
    is_foot: bool | None = None


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A contact point of a link with the ground.

    Attributes:
        name: Unique in the robot.
        link: Index of its link in `robot.links`.
        position: Link origin to the point, (3,), [m], link axes.
        radius: [m]; if positive, the point is the center of a spherical foot.
        material: Of a spherical foot; None for that of the link.
    """

    name: str
    link: int
    position: Array
    radius: float = 0.0
    material: Material | None = None

    @property
    def definition(self) -> Array | Sphere:
        """The contact as a value of `Link.contacts`: a position (3,), [m], link axes, or a sphere."""
        return Sphere(self.radius, self.position, self.material) if self.radius else self.position
