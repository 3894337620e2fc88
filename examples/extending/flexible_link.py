"""A flexible link by assumed modes: natural frequencies of a cantilever, and a robot whose arm vibrates.

The deflection of the link is a sum of the bending modes of a clamped beam, each with one coordinate. The link consists
of rigid segments whose hinges follow the coordinates of the modes: a hinge turns by the difference of the slopes of its
segments. Large motions of the base are exact, and the frequencies converge with the square of the segments' length. A
joint of a user's own (`Joint.stages`) chains massless stages, so that it cannot hold the kinetic energy of a link;
joints that follow others can.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# SciPy has no types.

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

import legged


def clamped_beam(mode: int) -> tuple[float, float]:
    """Return (beta, ratio) of a clamped beam of length 1 with the shape cosh - cos - ratio (sinh - sin) of beta x.

    The free end is without load if cos(beta) cosh(beta) = -1.

    Args:
        mode: Number of the mode, from 0.
    """
    x = float(brentq(lambda x: np.cos(x) + 1.0 / np.cosh(x), mode * np.pi + 1e-3, (mode + 1) * np.pi))  # type: ignore[arg-type]
    return x, (np.cosh(x) + np.cos(x)) / (np.sinh(x) + np.sin(x))


def mode_slope(mode: int, x: np.ndarray) -> np.ndarray:
    """Return the slope of a bending mode, divided by beta, at positions along a beam of length 1.

    Args:
        mode: Number of the mode, from 0. x: Positions, (n,), from 0 to 1.
    """
    beta, ratio = clamped_beam(mode)
    return np.sinh(beta * x) + np.sin(beta * x) - ratio * (np.cosh(beta * x) - np.cos(beta * x))


def flexible_link(
    name: str, length: float, mass: float, stiffness: float, *, modes: int = 2, segments: int = 16, axis: str = "y"
) -> legged.Limb:
    """Return a slender link along x that is clamped and bends about an axis, as a limb that carries further links.

    Args:
        name: Prefix of the names of links and joints.
        length: [m]. mass: [kg]. stiffness: Bending stiffness EI, [N m^2].
        modes: Number of assumed modes; mode m has the coordinate of joint f"{name}_hinge0_{m}", its angle at the clamp.
        segments: Number of hinges of each mode. axis: Of bending.
    """
    limb, step = legged.Limb(), length / segments
    hinge = legged.JointPhysics(stiffness=stiffness / step)
    angles = [np.diff(mode_slope(m, np.arange(segments + 1) / segments)) for m in range(modes)]
    to = None
    for k in range(segments):
        size = step if k < segments - 1 else step / 2  # the first half segment is part of the clamp
        box = legged.box_inertia(mass * size / length, (size, length / 200, length / 200), (size / 2, 0, 0))
        for m in range(modes):
            last = m == modes - 1
            link = legged.Link(f"{name}_segment{k}", box) if last else legged.Link(f"{name}_between{k}_{m}")
            at = ((step if k else step / 2), 0.0, 0.0) if m == 0 else (0.0, 0.0, 0.0)
            limb.add(legged.Revolute(f"{name}_hinge{k}_{m}", axis, physics=hinge), link, to=to, at=at)
            to = link.name
            if k:
                ratio = float(angles[m][k] / angles[m][0])
                limb.couple(f"{name}_hinge{k}_{m}", f"{name}_hinge0_{m}", ratio)
    return limb


def frequencies(robot: legged.Robot) -> np.ndarray:
    """Return the natural frequencies of small vibrations about q = 0, (nv,), [rad/s], increasing."""
    q, h = robot.neutral(), 1e-6
    force = [legged.bias_forces(robot, legged.integrate(robot, q, x), np.zeros(robot.nv)) for x in h * np.eye(robot.nv)]
    stiffness = np.array(force) / h
    return np.sqrt(eigh((stiffness + stiffness.T) / 2, legged.inertia_matrix(robot, q), eigvals_only=True))


def cantilever(segments: int, modes: int = 2, gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> legged.Robot:
    """Return a clamped beam of 1 m, 1 kg and 10 N m^2."""
    wall = legged.Link("wall", legged.point_mass(1.0))
    builder = legged.RobotBuilder("cantilever", wall, base=legged.FixedBase(), gravity=gravity)
    return builder.attach(flexible_link("beam", 1.0, 1.0, 10.0, modes=modes, segments=segments), to="wall").build()


def swinging_arm() -> legged.Robot:
    """Return a flexible beam on a hinge, with a load of 0.5 kg at its end."""
    hub = legged.Link("hub", legged.box_inertia(0.5, (0.1, 0.1, 0.1)))
    builder = legged.RobotBuilder("arm", legged.Link("wall", legged.point_mass(1.0)), base=legged.FixedBase())
    builder.add(legged.Revolute("shoulder", "y"), hub, to="wall")
    builder.attach(flexible_link("beam", 1.0, 1.0, 100.0, segments=8), to="hub")
    load = legged.Link("load", legged.box_inertia(0.5, (0.05, 0.05, 0.05)))
    return builder.add(legged.Fixed("grip"), load, to="beam_segment7", at=(1.0 / 16, 0, 0)).build()


if __name__ == "__main__":
    exact = np.array([clamped_beam(m)[0] ** 2 for m in range(2)]) * np.sqrt(10.0)
    print(f"cantilever of 1 m, 1 kg, 10 N m^2: {exact[0]:.3f} and {exact[1]:.3f} rad/s in closed form")
    for n in (4, 8, 16, 32):
        errors = frequencies(cantilever(n)) / exact - 1.0
        print(f"{n:2d} segments: errors {100 * errors[0]:+.3f} % and {100 * errors[1]:+.3f} %")
    arm = swinging_arm()
    q = np.array([0.0, 0.02, 0.0])  # the shoulder, and the angles of both modes at the clamp
    run = legged.simulate(arm, until=2.0, q=q, integrator=legged.RungeKutta4(2e-4))
    print(f"swinging arm, {arm.nv} degrees of freedom: energy drift {run.energy_drift:.1e} J in 2 s")
