"""Feet as closed loops, compared with feet on compliant floors: a biped squats on both feet and sways on one.

Loops hold the heels and toes at points of the world. The same servo moves the joints in all simulations, and the
trunk's height and the loads of a foot and its heel are compared.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import legged
import robots
from legged import loops
from legged.ground import realistic_ground
from legged.simulation.plots import pages
from legged.table import Table

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/feet_as_loops")
robot = robots.planar_biped()
weight, landed, pace = 9.81 * robot.mass, 1.0, np.pi  # [N], [s] after which runs are compared, [rad/s]
FLOORS = {1e-3: pages.ORANGE, 5e-4: pages.BLUE, 1e-4: pages.GREEN}  # penetration while standing in each, [m]
PHASES = {
    "double support": ([0.6, -0.7, 0.1, 0.1, -0.7, 0.6], "ab"),
    "single support": ([0.3, -0.6, 0.3, 0.5, -1.4, 0.9], "a"),
}
"""Joints of legs a and b, [rad], and the feet that stand."""
QUANTITIES = ("trunk, rise [mm]", "load of foot a [N]", "load of its heel [N]")


def path(stands: loops.ClosedRobot, q: np.ndarray, phase: str) -> np.ndarray:
    """Return joint positions as polynomials of s in [-1, 1], (6, powers), highest power first: a squat or a swing.

    The servo goes along the path and back, s = -cos(pace t).
    """
    if phase == "single support":
        swing = np.array([0.0, 0.0, 0.0, 0.1, -0.2, 0.1])  # [rad]
        return np.stack([swing, q[3:] + swing], axis=1)
    samples = np.linspace(-1.0, 1.0, 9)
    lowered = [loops.assemble(stands, q - [0, 0, 0.03 * (1 + s), *np.zeros(6)], hold_base=True)[3:] for s in samples]
    return np.polyfit(samples, lowered, 4).T


def servo(joints: np.ndarray) -> Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Return a law that tracks the polynomials of `path` with proportional and derivative gains."""
    powers = np.arange(len(joints[0]))[::-1]
    slopes = np.multiply(joints, powers)[:, :-1]

    def torque(t: float, q: np.ndarray, v: np.ndarray, wrenches: np.ndarray) -> np.ndarray:
        s, rate = -np.cos(pace * t), pace * np.sin(pace * t)
        desired = sum(c * s**k for k, c in enumerate(joints.T[::-1]))
        speed = sum(c * s**k for k, c in enumerate(slopes.T[::-1])) * rate
        return 3000.0 * (desired - q[3:]) + 60.0 * (speed - v[3:])  # [N m/rad], [N m s/rad]

    return torque


def loop_forces(stands: loops.ClosedRobot, run: legged.Run) -> np.ndarray:
    """Return the constraint forces at the contact points during a run, (T, points, 3), [N], world axes."""
    forces: list[np.ndarray] = []
    for q, v, tau in zip(run.q, run.v, run.tau, strict=True):
        multipliers = loops.solve(stands, q, v, tau).multipliers
        forces.append(loops.loop_wrenches(stands, q, multipliers)[:, 3:])
    return np.array(forces)


def compared(run: legged.Run, start: float, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the `QUANTITIES` of a run, (T,) each, of the height at the start, [m], and the forces on the contacts."""
    return 1e3 * (run.q[:, 2] - start), forces[:, :2, 2].sum(axis=1), forces[:, 0, 2]


rows: list[tuple[str, ...]] = []
drawing = pages.figure(2, 3, width=10.0, height=2.6, sharex=True)
for axes, (phase, (posture, feet)) in zip((drawing.axes[:3], drawing.axes[3:]), PHASES.items(), strict=True):
    q = np.concatenate([np.zeros(3), posture])
    q[2] = -legged.frame_pose(robot, q, "a_heel").position[2]
    contacts = [f"{foot}_{end}" for foot in feet for end in ("heel", "toe")]
    stands = loops.pin_contacts(robot, q, contacts)
    controller = servo(path(stands, q, phase))
    bound = legged.simulate(stands, controller, until=4.0, q=q, integrator=legged.Stiff())
    held = compared(bound, q[2], loop_forces(stands, bound))
    late = bound.times > landed
    for depth, color in FLOORS.items():
        ground = realistic_ground(robot, penetration=depth)
        run = legged.simulate(robot, controller, until=4.0, ground=ground, q=q)
        own = compared(run, q[2], run.contacts.forces[:, : len(contacts)])
        apart = [np.abs((x - y)[late]).max() for x, y in zip(own, held, strict=True)]
        joints = np.abs(run.q[late, 3:] - bound.q[late, 3:]).max()
        sizes = apart[0], apart[1] / weight, apart[2] / weight, joints
        rows.append((phase, f"{1e3 * depth:g}", *(f"{x:.2g}" for x in sizes)))
        for ax, curve in zip(axes, own, strict=True):
            ax.plot(run.times, curve, color=color, linewidth=1.2, label=f"floor, stands {1e3 * depth:g} mm deep")
    for ax, curve, what in zip(axes, held, QUANTITIES, strict=True):
        ax.plot(bound.times, curve, "--", color="black", linewidth=1.0, label="loops")
        pages.label(ax, phase, "t [s]" if phase == "single support" else "", what)

header = ("phase", "floor [mm]", "trunk [mm]", "foot's load [weight]", "heel's load [weight]", "joints [rad]")
table = Table(f"Largest differences between floors and loops, after {landed:g} s", header, tuple(rows), left=1)
print(table.markdown())
pages.save(pages.legend(drawing), folder / "feet_as_loops.png")
print("wrote feet_as_loops.png")
