"""Impacts and rolling: Painleve's rod, rocking block, spinning disc, cradle, falling balls, flight over step sizes."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad

from benchmarks.contact.rows import DRAKE, MISSING, MUJOCO, OURS, PINOCCHIO, Row, programs
from benchmarks.contact.scenes import G, Solid, World, mujoco, ours
from legged.contact import Box, Capsule, Cylinder, Sphere

WEIGHTLESS = (0.0, 0.0, 0.0)
ELASTIC = "-200000 0"
"""Stiffness and damping of MuJoCo's contacts without loss, with a negative sign as its format requires."""


def painleve(short: bool = False) -> list[Row]:
    """Return gain of energy and depth of a rod that slides on its end with friction above Painleve's limit.

    At 58 degrees and mu = 2, above the limit of 4/3 for thin rods, no finite forces satisfy Coulomb's law: the end
    jams by an impulse, and the rod tips over. Energy must not increase.
    """
    radius, length, angle, until = 0.01, 1.0, np.radians(58.0), 0.05 if short else 0.6
    # The axis of the capsule, its z axis, leans back from the lower end, which slides towards +x.
    turn = -(np.pi / 2 - angle)
    height = 0.5 * length * np.sin(angle) + radius
    quaternion = (float(np.cos(turn / 2)), 0.0, float(np.sin(turn / 2)), 0.0)
    rod = Solid("rod", Capsule(radius, length), 1.0, (0.0, 0.0, float(height)), quaternion, velocity=(2.0, 0.0, 0.0))
    world = World([rod], 2.0)
    gains, depths = {}, {}
    for name, program in programs().items():
        if name == DRAKE:
            continue
        motion = program(world, until, 1e-3, 1e-3)
        energy = motion.energy(world)
        axis = motion.rotation["rod"][:, 2, 2]
        low = motion.position["rod"][:, 2] - 0.5 * length * np.abs(axis) - radius
        gains[name] = 100.0 * float(max((energy - energy[0]).max(), 0.0) / energy[0])
        depths[name] = 1e3 * float(max(-low.min(), 0.0))
    return [
        Row("Painleve's rod", "largest gain of energy, %", gains, negligible=1e-3),
        Row("Painleve's rod", "largest penetration, mm", depths, negligible=1e-3),
    ]


def rocking(short: bool = False) -> list[Row]:
    """Return errors of the fall time of a rocking block, and of its rate after the impact on its other edge.

    Housner 1963: the rate falls by the factor 1 - 3/2 sin^2 alpha; the time is that of the nonlinear pendulum.
    """
    wide, high = 0.1, 0.4
    alpha, reach = np.arctan(wide / high), 0.5 * np.hypot(wide, high)
    start = 0.5 * alpha
    p2 = 0.75 * G / reach

    def rate_at(angle: float) -> float:
        return float(np.sqrt(2.0 * p2 * (np.cos(alpha - start) - np.cos(alpha - angle))))

    fall = quad(lambda x: 2.0 * start * x / rate_at(start * (1.0 - x * x)), 0.0, 1.0)[0]  # angle = start (1 - x^2)
    center = reach * np.array([-np.sin(alpha - start), np.cos(alpha - start)])
    quaternion = (float(np.cos(start / 2)), 0.0, float(np.sin(start / 2)), 0.0)
    solid = Solid("block", Box((wide, 0.3, high)), 10.0, (float(center[0]), 0.0, float(center[1])), quaternion)
    world, until = World([solid], 2.0), float(fall) * (1.1 if short else 1.4)
    times, ratios = {}, {}
    for name, program in programs().items():
        motion = program(world, until, 1e-3, 1e-3)
        rate = motion.spin["block"][:, 1]
        hit = int(np.abs(rate).argmax())
        after = np.abs(rate[hit + 1 :]) + p2 * np.sin(alpha) * 1e-3 * np.arange(1, len(rate) - hit)  # without gravity
        times[name] = 100.0 * abs(motion.times[hit] / fall - 1.0)
        ratios[name] = float(after[min(10, len(after) - 1)] / abs(rate[hit])) if len(after) else MISSING
    return [
        Row("rocking block", "error of the time to the first impact, %", times, negligible=0.5),
        Row(
            "rocking block",
            "rate after the impact over that before",
            ratios,
            exact=float(1.0 - 1.5 * np.sin(alpha) ** 2),
            negligible=5e-3,
        ),
    ]


def disc(short: bool = False) -> list[Row]:
    """Return the change of energy of a thin disc that rolls with its center at rest.

    It precesses at Omega with Omega^2 sin(angle) = 4 g / radius and turns about the diameter through the contact.
    """
    radius, thickness, angle, until = 0.1, 0.0002, np.radians(25.0), 0.05 if short else 0.5
    precession = np.sqrt(4.0 * G / radius / np.sin(angle))
    turn = float(angle)  # about y: the lowest point of the rim is at +x
    quaternion = (float(np.cos(turn / 2)), 0.0, float(np.sin(turn / 2)), 0.0)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])  # from the center to the contact
    spin = -precession * np.sin(angle) * down
    height = radius * np.sin(angle) + 0.5 * thickness * np.cos(angle)
    solid = Solid(
        "disc", Cylinder(radius, thickness), 1.0, (0.0, 0.0, float(height)), quaternion, spin=tuple(spin.tolist())
    )
    world = World([solid], 5.0)
    losses = {}
    for name, program in programs().items():
        energy = program(world, until, 1e-3, 1e-3).energy(world)
        losses[name] = 100.0 * abs(float(energy[-1] / energy[0]) - 1.0)
    return [Row("spinning disc", "change of energy in 0.5 s, %", losses, negligible=0.01)]


def cradle(short: bool = False) -> list[Row]:
    """Return the speed of the last ball of five over that of the first, touching and with gaps of 1 mm."""
    rows = []
    for words, gap in (("touching balls", 0.0), ("gaps of 2 mm", 2e-3)):
        count = 2 if short else 5
        shape = Sphere(0.05)
        places = [(k * (0.1 + gap) - (0.03 if k == 0 else 0.0), 0.0, 0.0) for k in range(count)]
        solids = [
            Solid(f"ball{k}", shape, 1.0, at, velocity=(1.0 if k == 0 else 0.0, 0.0, 0.0))
            for k, at in enumerate(places)
        ]
        pairs = [(f"ball{k}", f"ball{k + 1}") for k in range(count - 1)]
        world = World(solids, 0.0, 1.0, WEIGHTLESS, pairs)
        last, until = f"ball{count - 1}", 0.2
        values = {
            OURS: float(ours(world, until).velocity[last][-1, 0]),
            MUJOCO: float(mujoco(world, until, 1e-4, solref=ELASTIC).velocity[last][-1, 0]),
        }
        rows.append(
            Row(
                "Newton's cradle",
                f"speed of the last ball over that of the first, {words}",
                values,
                exact=1.0,
                negligible=1e-3,
            )
        )
    return rows


def falling_balls(short: bool = False) -> list[Row]:
    """Return the speed of a ball of 1 kg that falls on one of 3 kg, over the speed of the impact, which should be 2."""
    drop, radius = 0.3, 0.05
    fall = float(np.sqrt(2.0 * drop / G))
    solids = [
        Solid("lower", Sphere(radius), 3.0, (0.0, 0.0, drop + radius)),
        Solid("upper", Sphere(radius), 1.0, (0.0, 0.0, drop + 3.0 * radius + 0.01)),
    ]
    world = World(solids, 0.0, 1.0, pairs=[("lower", "ground"), ("upper", "lower")])
    until = fall * (0.2 if short else 1.1)
    motions = {OURS: ours(world, until, 1e-4), MUJOCO: mujoco(world, until, 1e-4, solref=ELASTIC)}
    values = {n: float(m.velocity["upper"][-1, 2] + G * (m.times[-1] - fall)) / (G * fall) for n, m in motions.items()}
    return [
        Row("falling balls", "rebound of the upper ball over the speed of impact", values, exact=2.0, negligible=0.02)
    ]


def flight(short: bool = False) -> list[Row]:
    """Return errors of angular momentum and energy of a tumbling brick in 1 s of free flight, for three steps."""
    brick = Solid("brick", Box((0.3, 0.2, 0.1)), 1.0, (0.0, 0.0, 5.0), spin=(0.1, 8.0, 0.2))
    world, rows = World([brick], gravity=WEIGHTLESS), []
    tensor = np.asarray(brick.inertia.tensor)
    for step in (1e-3,) if short else (4e-3, 2e-3, 1e-3):
        momenta, energies = {}, {}
        for name, program in programs().items():
            if name == PINOCCHIO:  # without contacts the motion is ours
                continue
            motion = program(world, 0.1 if short else 1.0, step, 0.02)
            R, spin = motion.rotation["brick"], motion.spin["brick"]
            L = np.einsum("tij,jk,tlk,tl->ti", R, tensor, R, spin)
            momenta[name] = 100.0 * float(np.linalg.norm(L - L[0], axis=1).max() / np.linalg.norm(L[0]))
            energy = motion.energy(world)
            energies[name] = 100.0 * float(np.abs(energy / energy[0] - 1.0).max())
        words = f"in steps of {1e3 * step:g} ms, %"
        rows.append(Row("tumbling brick", f"error of angular momentum {words}", momenta, negligible=1e-6))
        rows.append(Row("tumbling brick", f"error of energy {words}", energies, negligible=1e-6))
    return rows
