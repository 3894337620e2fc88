"""Leg geometry of the robots in the paper's demonstrations: what their gaits assume until they are given a robot.

Source:
    Shah, Saha, Dutt 2012, section 5; hip places from the authors' model files.
"""

from __future__ import annotations

from controllers.gaits.leg import Leg


def paper_biped() -> tuple[Leg, ...]:
    """Return the legs of the planar 7-link biped: hips 0.25 m below the trunk's center of mass, flat feet."""
    return tuple(Leg(name, (0.0, 0.0, -0.25), thigh=0.5, shank=0.5, flat_foot=True) for name in ("a", "b"))


def paper_quadruped() -> tuple[Leg, ...]:
    """Return the legs of the spatial quadruped: rear right, rear left, front right, front left, with abduction."""
    places = [(-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25)]
    return tuple(Leg(f"leg{i + 1}", (x, y, 0.0), 0.3, 0.3, abducts=True) for i, (x, y) in enumerate(places))


def paper_hexapod() -> tuple[Leg, ...]:
    """Return the legs of the hexapod, from the rear to the front, right before left."""
    places = [(x, y) for x in (-0.6, 0.0, 0.6) for y in (-0.25, 0.25)]
    return tuple(Leg(f"leg{i + 1}", (x, y, 0.0), 0.3, 0.3) for i, (x, y) in enumerate(places))
