"""Comparison with MuJoCo for the same robot, state and commands: joint order, parameters and the first deviation.

Run `python examples/experiments/compare_with_mujoco.py [robot.urdf or robot.xml]`. Without a file it uses the paper's
quadruped with rotors and dampers at its joints. Servos hold the joints in a standing posture. In the air both programs
must agree within the integration error, which runs with half the time step estimate. On the ground they deviate, since
their laws of contact differ.
"""

import sys
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

import numpy as np

import controllers
import legged
import robots
from legged.files.export_description import base_names, contact_names, stage_names
from legged.files.mjcf.export import to_mjcf
from legged.ground import realistic_ground
from legged.table import Table

try:
    mujoco: Any = import_module("mujoco")
except ImportError:
    sys.exit("this compares with MuJoCo: pip install 'legged[mujoco]'")

STEP, STIFF_STEP = 1e-3, 1e-4  # in flight and on the ground, [s]
SWING = 15.0  # natural frequency of the servos in flight, [rad/s]
DURATION, DROP = 0.2, 0.002  # [s], [m]
PARTED = 1e-6  # [rad], [m]
RADIUS = 1e-3  # of the spheres that are contact points in MuJoCo, [m]
Pair = tuple[np.ndarray, np.ndarray]
FLOOR, FOOT = (
    {"contype": "1", "conaffinity": "2"},
    {"contype": "2", "conaffinity": "1"},
)  # contact between floor and feet only


class Servo:
    """A spring and a damper at every joint about a standing posture."""

    def __init__(self, robot: legged.Robot, stands: bool):
        home = controllers.home_of(robot)
        self.base, self.target, self.height = robot.base, home.angles, home.base_height
        if stands:
            self.kp, self.kd = controllers.servo_gains(robot, home.angles, home.hip_height)
        else:
            q = np.concatenate([robot.base.neutral(), home.angles])
            inertia = np.diag(legged.inertia_matrix(robot, q))[robot.base.nv :]
            self.kp, self.kd = inertia * SWING**2, inertia * 2.0 * SWING

    def __call__(self, t: Any, q: np.ndarray, v: np.ndarray, wrenches: np.ndarray) -> np.ndarray:
        return self.kp * (self.target - q[self.base.nq :]) - self.kd * v[self.base.nv :]


def chosen_robot() -> legged.Robot:
    """Return the robot of the file in the command line, or the paper's quadruped."""
    for name in sys.argv[1:]:
        if name.endswith((".urdf", ".xml")):
            return legged.load(name, mimic="fixed")  # MuJoCo couples joints by soft constraints
    return with_physics(robots.spatial_quadruped(), damping=0.2, armature=0.02)  # [N m s/rad], [kg m^2]


def with_physics(robot: legged.Robot, **changes: Any) -> legged.Robot:
    """Return the robot with changes of the `JointPhysics` of all joints."""
    editor = robot.edit()
    for joint in (*robot.joints, *robot.followers):
        editor.change_joint(joint.name, **changes)
    return editor.build()


def names_of(robot: legged.Robot) -> list[str]:
    """Return the name of each entry of v: in MuJoCo it is a joint of its own, but for a floating base."""
    base = ["base turned"] * 3 + ["base moved"] * 3 if robot.base.kind == "floating" else base_names(robot.base)
    return [*base, *(name for joint in robot.joints for name in stage_names(joint.definition))]


def model_of(robot: legged.Robot, servo: Servo, step: float, floor: bool) -> Any:
    """Return MuJoCo's model of the robot with servos, on a floor or without any constraint."""
    root = to_mjcf(robot)
    for option in root.iter("option"):
        option.attrib.update(timestep=repr(step), integrator="RK4")
        ElementTree.SubElement(option, "flag", constraint="enable" if floor else "disable")
    if floor:
        add_floor(root, contact_names(robot))
    actuators = ElementTree.SubElement(root, "actuator")
    for name, kp, kd in zip(names_of(robot)[robot.base.nv :], servo.kp, servo.kd, strict=True):
        gains = {"name": name, "joint": name, "kp": repr(float(kp)), "kv": repr(float(kd))}
        ElementTree.SubElement(actuators, "position", gains)
    try:
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    except ValueError as error:
        sys.exit(
            f"MuJoCo refuses {robot.name!r}: {error}\nlegged.load has repair='inertia' for inertias that no body has"
        )


def add_floor(root: ElementTree.Element, contacts: tuple[str, ...]) -> None:
    """Add spheres at the contact points, and a floor that they touch when the points are at z = 0."""
    for body in list(root.iter("body")):
        for site in [each for each in body.findall("site") if each.get("name") in contacts]:
            sphere = {"type": "sphere", "size": repr(RADIUS), "mass": "0", "pos": site.get("pos", "0 0 0")}
            ElementTree.SubElement(body, "geom", sphere | FOOT, friction="0.8")
    plane = {"type": "plane", "size": "50 50 1", "pos": f"0 0 {-RADIUS!r}"}
    for world in root.iter("worldbody"):
        ElementTree.SubElement(world, "geom", plane | FLOOR, friction="0.8")


def motions(robot: legged.Robot, servo: Servo, start: legged.State, step: float, sample: float, floor: bool) -> Pair:
    """Return the configurations of `legged` and of MuJoCo at the samples, (T, nq) each, in the order of `legged`."""
    ground = realistic_ground(robot) if floor else None
    method = legged.RungeKutta4(step=step)
    run = legged.simulate(
        robot, servo, until=DURATION, ground=ground, q=start.q, v=start.v, integrator=method, sample=sample, fall=False
    )
    model = model_of(robot, servo, step, floor)
    data, theirs = mujoco.MjData(model), legged.conversions.mujoco(robot, model)
    data.qpos[:], data.qvel[:] = theirs.to_configuration(start.q), theirs.to_velocity(*start)
    data.ctrl[:] = servo.target
    seen = [data.qpos.copy()]
    for _ in range(round(DURATION / sample)):
        mujoco.mj_step(model, data, nstep=round(sample / step))
        seen.append(data.qpos.copy())
    return run.q, theirs.from_configuration(np.array(seen))


def apart(robot: legged.Robot, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the absolute difference of two motions in every entry of v, (T, nv), [rad] or [m]."""
    return np.abs([legged.difference(robot, a, b) for a, b in zip(one, other, strict=True)])


def print_numbers(robot: legged.Robot, servo: Servo, model: Any) -> None:
    """Print order, gains and armature of the joints in both programs, and their base coordinates."""
    rigid = legged.inertia_matrix(with_physics(robot, armature=0.0, rotor=None), robot.neutral())
    armature = np.diag(legged.inertia_matrix(robot, robot.neutral()) - rigid)
    rows: list[tuple[str, ...]] = []
    for k, name in enumerate(names_of(robot)[robot.base.nv :]):
        dof, gains = model.joint(name).dofadr[0], model.actuator(name)
        here = robot.base.nv + k, servo.kp[k], servo.kd[k], armature[robot.base.nv + k]
        there = dof, gains.gainprm[0], -gains.biasprm[2], model.dof_armature[dof]
        rows.append((name, *(f"{x:.5g}" for pair in zip(here, there, strict=True) for x in pair)))
    header = ("", *(f"{what} {whose}" for what in ("v", "kp", "kd", "armature") for whose in ("here", "there")))
    title = f"{robot.name}: index in v, gains [N m/rad], [N m s/rad] and armature [kg m^2], here and in MuJoCo"
    print(Table(title, header, tuple(rows)).text())
    print(f"base: {robot.base.kind}, link {robot.links[0].name!r}")
    print("  here   q = [quaternion w x y z; position], v = [angular; linear], both in base axes")
    print("  there  q = [position; quaternion w x y z], v = [linear in world axes; angular in base axes]")
    times = f"{1e3 * STEP:g} ms in the air and {1e3 * STIFF_STEP:g} ms on the ground"
    print(f"time step {times}, Runge-Kutta of order 4 in both\n")


def compare_in_air(robot: legged.Robot, servo: Servo, start: legged.State) -> None:
    """Print the difference in flight for a time step and half of it, and the change due to halving in each program."""
    print(
        f"in the air, {DURATION:g} s, without contact, dry friction, stops and motor limits, servos of {SWING:g} rad/s:"
    )
    steps = [STEP, STEP / 2, STEP / 4]
    agrees = False
    pairs = [motions(robot, servo, start, step, 10 * STEP, False) for step in steps]
    differences = [apart(robot, *pair) for pair in pairs]
    for k in range(2):
        own = [apart(robot, coarse, fine).max() for coarse, fine in zip(pairs[k], pairs[k + 1], strict=True)]
        worst = names_of(robot)[int(differences[k].max(axis=0).argmax())]
        words = f"apart by up to {differences[k].max():.1e} rad or m, most in {worst!r}"
        print(
            f"  step {1e3 * steps[k]:g} ms: {words}; half the step moves ours by {own[0]:.1e}, MuJoCo's by {own[1]:.1e}"
        )
        agrees = differences[k].max() <= sum(own)
    order = np.log2(differences[0].max() / differences[1].max())
    verdict = "they agree to integration accuracy" if agrees else "THEY DO NOT AGREE"
    print(f"  the difference falls with the step to the power {order:.1f}: {verdict}\n")


def compare_on_ground(robot: legged.Robot, servo: Servo, start: legged.State) -> None:
    """Print when the base and each joint deviate on the ground, and by how much at the end."""
    differences, labels = apart(robot, *motions(robot, servo, start, STIFF_STEP, STEP, True)), np.array(names_of(robot))
    rows: list[tuple[str, ...]] = []
    first = (np.inf, "nothing")
    for name in dict.fromkeys(labels):
        values = differences[:, labels == name].max(axis=1)
        since = STEP * int(np.argmax(values > PARTED)) if values.max() > PARTED else np.inf
        first = min(first, (since, str(name)))
        rows.append((name, f"{since:.3f}" if since < np.inf else "never", f"{values.max():.1e}", f"{values[-1]:.1e}"))
    title = f"on the ground, {DURATION:g} s, dropped by {1e3 * DROP:g} mm: apart by more than {PARTED:g} rad or m"
    print(Table(title, ("", "since [s]", "at most", "in the end"), tuple(rows)).text())
    print(f"first to part: {first[1]!r} at t = {first[0]:.3f} s")


robot, rng = chosen_robot(), np.random.default_rng(0)
rigid = with_physics(robot, friction=0.0, lower=-np.inf, upper=np.inf, effort=np.inf, speed=np.inf)
swing, stand = Servo(robot, stands=False), Servo(robot, stands=True)
tilted = robot.base.configuration(np.array([0.0, 0.0, 1.0]), legged.rpy(0.1, 0.2, 0.3))
level = robot.base.configuration(np.array([0.0, 0.0, stand.height + DROP]), np.eye(3))
moving = legged.State(
    np.concatenate([tilted, swing.target + rng.normal(0.0, 0.2, robot.nj)]), rng.normal(size=robot.nv)
)
still = legged.State(np.concatenate([level, stand.target]), np.zeros(robot.nv))

print_numbers(robot, stand, model_of(robot, stand, STIFF_STEP, floor=True))
compare_in_air(rigid, swing, moving)
compare_on_ground(robot, stand, still)
