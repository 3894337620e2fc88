"""The first script of a new user, checked by `strict_types.py` and executed by `test_types.py`."""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import controllers
import legged
import robots
from legged import Limb, Link, Revolute, RobotBuilder, box_inertia, rod_inertia
from legged.ground import realistic_ground
from legged.simulation import plots

Array = np.ndarray
SHIN = (0.0, 0.0, -0.4)  # [m]


def my_biped() -> legged.Robot:
    """Return a biped whose leg is defined once and attached twice."""
    leg = Limb().add(Revolute("hip", "-y"), Link("thigh", rod_inertia(2.0, (0, 0, 0), SHIN)))
    leg.add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.5, (0, 0, 0), SHIN), {"foot": SHIN}), at=SHIN)
    biped = RobotBuilder("biped", Link("trunk", box_inertia(10.0, (0.2, 0.3, 0.5))))
    for side, y in (("left_", 0.1), ("right_", -0.1)):
        biped.attach(leg, to="trunk", at=(0, y, -0.25), prefix=side)
    return biped.build()


class Springs:
    """A spring and a damper at every joint about the posture of the start."""

    def __init__(self, robot: legged.Robot, posture: Array, stiffness: float = 300.0) -> None:
        self.base, self.posture, self.stiffness = robot.base, posture, stiffness  # [N m/rad]

    def torque(self, t: float, phase: int, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the joint torques, (nj,), [N m]."""
        return self.stiffness * (self.posture - q[self.base.nq :]) - 12.0 * v[self.base.nv :]


def foot_height(robot: legged.Robot, q: Array) -> float:
    """Return the height of a foot, [m]."""
    return legged.frame_pose(robot, q, "leg1_foot").position[2]


folder = Path(mkdtemp())
biped = my_biped()
path = legged.save_urdf(biped, folder / "biped.urdf")
loaded = legged.load(path)
print(loaded.name, [module.links for module in loaded.modules])

q, v = biped.neutral(), np.zeros(biped.nv)
tau = legged.inverse_dynamics(biped, q, v, np.zeros(biped.nv))
vdot = legged.forward_dynamics(biped, q, v, tau)
energy = legged.kinetic_energy(biped, q, v) + legged.potential_energy(biped, q)
print(f"{np.abs(vdot).max():.1e} {energy:.3f} J, {legged.inertia_matrix(biped, q).shape}")

forward = legged.compile(legged.forward_dynamics, biped)
batch: Array = forward(np.tile(q, (100, 1)), v, tau)
into = np.empty(biped.nv)
forward(q, v, tau, out=into)
forward.to_c(folder / "forward")
print(batch.shape, forward.counts.M, legged.count(legged.inverse_dynamics, biped).A)

quadruped = robots.spatial_quadruped()
q0, v0 = controllers.Stand(hip_height=0.5).initial_state(quadruped)
ground = realistic_ground(quadruped)
law = Springs(quadruped, q0[quadruped.base.nq :])
push = legged.Push("trunk", (5.0, 0.0, 0.0), 0.05, 0.1)  # [N s], [s], [s]
run = legged.simulate(quadruped, law, ground=ground, q=q0, v=v0, until=0.2, pushes=[push])
knee, foot = run.joint("leg1_knee"), run.contact("leg1_foot")
print(len(run), knee.torque.max() > 0, foot.force[:, 2].mean() > 0, run.energy_drift < 1.0)
run.save(folder / "run.npz")
plots.trunk_figure(legged.Run.load(folder / "run.npz")).savefig(folder / "trunk.png")

rate = legged.jacobian(legged.inverse_dynamics, "v")
rates: Array = legged.compile(rate, quadruped)(q0, v0, 0 * v0)
slope: Array = legged.jacobian(foot_height, "q")(quadruped, q0)
print(rates.shape, slope.shape)

solver = legged.InverseKinematics(quadruped, {"leg1_foot": "position"}, hold=["base"])
solution = solver.solve(q0, {"leg1_foot": np.array([-0.5, -0.3, 0.05])})
print(solution.q.shape)
linear = legged.linearize(quadruped, q0, v0, 0 * v0)
print(linear.A.shape, linear.B.shape)

trot = controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
balanced = controllers.Balanced(trot)
start, velocity = balanced.initial_state(quadruped)
sizes = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])  # [N s]
fan = legged.rollout(
    quadruped, balanced, ground=ground, q=start, v=velocity, until=0.1, pushes=[push], vary={"pushes.0.impulse": sizes}
)
print(len(fan), fan.q.shape, fan.fallen.any(), fan.run(1).joint_tau.shape)

suited = controllers.suited(controllers.Trot, quadruped, home=None)
tuned = controllers.suited_law(controllers.Balanced, suited)
print(tuned.gain, type(suited.gait).__name__)

print(legged.verify(biped, states=1).passed)
