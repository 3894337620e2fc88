# ruff: noqa: E501  (tables of values)
"""Valid arguments of public functions and methods by name, for `argument_cases`."""

import tempfile
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from oracles.standing import shared_quadruped

import controllers
import legged
import robots
from legged import environments, estimation
from legged.sensors import DepthCamera

FOLDER = Path(tempfile.mkdtemp())
URDF, MJCF = FOLDER / "robot.urdf", FOLDER / "robot.xml"


class Later:
    """An argument that takes long to make and is made at the first call that needs it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def value(self) -> Any:
        """The argument."""
        return self._make()


def resolved(value: Any) -> Any:
    """Return an argument, made now if it is one for later."""
    return value.value if isinstance(value, Later) else value


BENT = np.array([1, 0, 0, 0, 0, 0, 0.5, *[0.4, -0.9, -0.4, 0.9] * 4])
"""A configuration of `robots.five_bar_quadruped`, near one with closed loops."""


def _robot() -> Any:
    return robots.planar_biped()


def usual_arguments() -> dict[str, Any]:
    """Return a valid argument for each usual name of a parameter."""
    robot = _robot()
    q, v = robot.neutral(), np.zeros(robot.nv)
    gait = controllers.paper_walk()
    closed = robots.four_bar()
    return {
        "run": Later(lambda: legged.simulate(robot, until=0.01, q=gait.initial_state(robot)[0], ground=legged.ground.paper_ground(robot))), "ground": legged.ground.paper_ground(robot),
        "robot": robot, "q": q, "v": v, "vdot": v, "tau": v, "dq": v, "start": q, "end": q, "wrenches": None,
        "joint_accelerations": np.zeros(robot.nj), "frame": "trunk", "axes": None, "relative_to": None, "link": "trunk",
        "point": (0.0, 0.0, 0.0), "points": [(0, (0.0, 0.0, 0.0))], "wrench": np.ones(6), "origin": (0.0, 0.0, 0.0),
        "normal": (0.0, 0.0, 1.0), "foot": robot.contacts[0].name if hasattr(robot.contacts[0], "name") else 0,
        "gait": gait, "kp": 100.0, "kd": 10.0, "ki": 1.0, "kv": 10.0, "law": controllers.ComputedTorque(gait),
        "mass": 1.0, "size": (1.0, 1.0, 1.0), "radius": 0.1, "center": (0.0, 0.0, 0.0), "at": (0.0, 0.0, 0.0),
        "name": "a", "first": "x", "second": "y", "axis": "z", "sequence": "xyz", "roll": 0.1, "pitch": 0.1, "yaw": 0.1,
        "rng": np.random.default_rng(1), "seed": 1, "links": 4, "n": 3, "pairs": 2, "stiffness": 1e4, "damping": 10.0,
        "coefficient": 0.5, "viscosity": 10.0, "friction": 0.5, "restitution": 0.1, "angle": 0.1, "heading": 0.0,
        "elevation": 0.0, "dissipation": 1.0, "step": 1e-3, "inertia": legged.sphere_inertia(1.0, 0.1), "length": 0.3,
        "shapes": [legged.contact.Sphere(0.1)], "contacts": {"tip": (0.0, 0.0, 0.0)}, "condition": True, "a": 1.0, "b": 2.0,
        "density": 0.1, "height": 0.3, "tilt": 1.0, "impulse": (0.0, 1.0, 0.0), "duration": 0.0, "closed": closed,
        "forces": np.ones((2, 3)), "hold": None, "multipliers": None, "feet": np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        "loads": np.ones((4, 2)), "on": 1.0, "off": 0.5, "imu": "trunk", "threshold": 1.0, "edges": (1.0, 2.0),
        "rises": (0.1, 0.1), "i": 1, "k": 1, "j": 0, "beta": 0, "r": np.ones(3), "form": "skew", "kind": controllers.Trot,
        "rate": 100.0, "torques": 10.0, "t": 0.1, "period": 1.0, "stride": 0.1, "clearance": 0.05, "time_constant": 0.1,
        "until": 0.01, "base": None, "gravity": (0.0, 0.0, -9.81), "axes_": None,
    }  # fmt: skip


CORNERS = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]])
"""Corners of a tetrahedron, (4, 3), [m]."""


def path_of_a_point(t: float) -> tuple[Any, Any, Any]:
    """Return position, velocity and acceleration of a point that rests."""
    return np.zeros(3), np.zeros(3), np.zeros(3)


def state_of(q: np.ndarray, v: np.ndarray) -> Any:
    """Return the state, as an observation."""
    return q, v


def planar_balance() -> controllers.PlanarBalance:
    """Return the model of balance of two rods on a pivot."""
    rod = legged.rod_inertia(0.5, (0, 0, 0), (0, 0, 0.5))
    builder = legged.RobotBuilder("rods", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    builder.add(legged.Revolute("pivot", "y"), legged.Link("shank", rod), to="ground")
    builder.add(legged.Revolute("knee", "y"), legged.Link("thigh", rod), to="shank", at=(0.0, 0.0, 0.5))
    return controllers.PlanarBalance(builder.build(), {"knee": 1.0})


def law_with_command(t: float, q: np.ndarray, v: np.ndarray, wrenches: np.ndarray, command: Any) -> np.ndarray:
    """Return zero torques."""
    return 0.0 * v


def _saved(save: Callable[[Any, Path], Any], robot: Any, path: Path) -> Path:
    save(robot, path)
    return path


def special_arguments(values: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], Any]:
    """Return the arguments of callables for which those of the usual names are not right, by qualified name."""
    closed = values["closed"]
    q = legged.loops.assemble(closed, [1.0, -0.5, 1.6])
    v = np.zeros(closed.robot.nv)
    loop_state = {"q": q, "v": v, "vdot": v, "tau": v}
    quadruped = shared_quadruped()
    urdf, mjcf = (
        Later(partial(_saved, save, quadruped, path))
        for save, path in ((legged.save_urdf, URDF), (legged.save_mjcf, MJCF))
    )
    loop_run = Later(lambda: legged.simulate(closed, until=0.01, q=q))
    trot = Later(lambda: controllers.suited(controllers.Trot, quadruped))
    v6 = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    model = planar_balance()
    bend_swivel = robots.bend_swivel_robot()
    floor = FOLDER / "floor.xml"
    floor.write_text('<mujoco><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>')
    special = {
        "legged.Ellipsoid": {"radii": (0.1, 0.2, 0.3)},
        "legged.Hull": {"vertices": CORNERS},
        "legged.hull_of": {"points": CORNERS},
        "legged.combine": {"robots": {"a": values["robot"]}},
        "legged.save_html": {"runs": values["run"], "path": FOLDER / "runs.html"},
        "legged.contact.load_ground": {"path": floor},
        "controllers.BendSwivelBalance": {"robot": bend_swivel},
        "controllers.BendSwivelControl": {"model": controllers.BendSwivelBalance(bend_swivel)},
        "controllers.ContactSchedule": {"period": 0.5, "duty": 0.6, "touchdowns": (0.0, 0.5)},
        "controllers.FaceContact": {"point": (0.0, 0.0, 0.0), "force": 1.0},
        "legged.FreeBody": {"position": (0.0, 0.0, 1.0), "quaternion": (1.0, 0, 0, 0), "velocity": (0.0, 0, 0), "spin": (0.0, 0, 0)},
        "legged.Push": {"at": 0.001},
        "legged.Frame": {"on": "trunk"},
        "legged.State": {}, "legged.Simulation": {"num": 2, "q": values["q"], "ground": legged.ground.paper_ground(values["robot"])},
        "legged.Link": {},
        "legged.simulate": {"controller": values["law"], "ground": legged.ground.paper_ground(values["robot"])},
        "legged.rollout": {"controller": values["law"], "ground": legged.ground.paper_ground(values["robot"]), "vary": {}},
        "legged.compile": {"function": legged.inertia_matrix, "robot": values["robot"]},
        "legged.count": {"function": legged.inertia_matrix, "robot": values["robot"]},
        "legged.random_tree": {"links": 4},
        "legged.partition": {"graph": values["robot"].graph},
        "legged.Rotor": {"inertia": 1e-4, "gear": 10.0},
        "legged.cylinder_inertia": {"start": (0.0, 0, 0), "end": (0.0, 0, 1)},
        "legged.rod_inertia": {"start": (0.0, 0, 0), "end": (0.0, 0, 1)},
        "legged.RobotBuilder": {"base_link": legged.Link("base", legged.sphere_inertia(1.0, 0.1))},
        "legged.verify": {"states": 1},
        "legged.contact_dynamics": {"contacts": [values["robot"].contacts[0].name]},
        "legged.contact_inverse_dynamics": {"contacts": [values["robot"].contacts[0].name]},
        "legged.ground.HeightMap": {"heights": np.zeros((4, 4)), "spacing": 0.1},
        "legged.ground.RollingHeightMap": {"shape": (4, 5), "spacing": 0.1},
        "legged.sensors.DepthCamera": {"frame": "trunk"},
        "legged.sensors.depth_along": {"terrain": legged.ground.Flat(), "origin": np.array([0.0, 0.0, 0.5]), "direction": np.array([1.0, 0.0, -1.0]), "far": 2.0, "step": 0.1},
        "controllers.Seeing": {"simulation": _seen_simulation(), "camera": DepthCamera("trunk")},
        "legged.Table": {"title": "a", "header": ("a", "b"), "rows": (("1", "2"),)},
        "legged.count_growth": {"functions": legged.inertia_matrix, "build": robots.chain, "sizes": [1, 2]},
        "controllers.Follow": {"law": controllers.Locomotion("trot", None), "waypoints": [(1.0, 0.0)]},
        "controllers.Recovery": {"law": controllers.Locomotion("trot")},
        "legged.point_jacobian": {"link": 0},
        "legged.save_urdf": {"path": FOLDER / "saved.urdf"},
        "legged.sweep": {"trial": lambda x: abs(x), "samples": {"x": [1.0, 2.0]}, "store": FOLDER / "study"},
        "legged.save_mjcf": {"path": FOLDER / "saved.xml"},
        "legged.load": {"path": urdf},
        "legged.audit": {"path": urdf},
        "legged.Inertia": {"mass": 1.0, "tensor": np.eye(3) * 0.1},
        "controllers.FootKinematics": {"robot": quadruped, "points": ["leg1_foot"]},
        "controllers.PointTask": {"path": path_of_a_point},
        "controllers.PoseTask": {"path": path_of_a_point},
        "controllers.servo_gains": {"robot": quadruped, "home": np.tile([0.0, 0.6, -1.2], 4), "hip_height": 0.5},
        "controllers.swing_foot": {"path": "cycloid"},
        "legged.ground.center_of_pressure": {"points": np.eye(2, 3)},
        "legged.loops.close": {"joint": legged.Revolute("pin", "y"), "parent": "a_shank", "child": "b_shank"},
        "legged.loops.load": {"path": mjcf},
        "legged.loops.save_mjcf": {"path": FOLDER / "loops.xml"},
        "legged.loops.loop_errors": {"run": loop_run},
        "legged.loops.ranks": {"run": loop_run},
        "legged.loops.standing": {"q": values["q"], "contacts": ["a_heel"]},
        "legged.loops.LoopBuilder": {"name": "a", "base_link": legged.Link("base", legged.sphere_inertia(1.0, 0.1))},
        "legged.loops.active_forces": {"forces": {}},
        "legged.loops.determinacy": {"actuated": ["crank joint"]},
        "legged.loops.inverse_dynamics": {"actuated": ["crank joint"]},
        "legged.loops.joint_wrenches": {"multipliers": np.zeros(len(closed.rows))},
        "legged.loops.loop_wrenches": {"multipliers": np.zeros(len(closed.rows))},
        "legged.sensors.capture_point": {"origin": (0.0, 0.0, -2.0)},
        "legged.sensors.zero_moment_point": {"origin": (0.0, 0.0, -2.0)},
        "legged.sensors.contact_force": {"wrenches": np.zeros((len(values["robot"].links), 6)), "foot": "a_heel"},
        "legged.sensors.measure": {"run": values["run"], "imu": None},
        "legged.sensors.sliding_per_stance": {"run": values["run"]},
        "legged.conversions.legged": {"other": values["robot"]},
        "legged.conversions.postures": {"robot": quadruped, "path": mjcf},
        "legged.InverseKinematics": {"targets": {"trunk": "position"}},
        "legged.jacobian": {"function": legged.inertia_matrix, "argument": "q"},
        "legged.ground.Ground": {"normal": legged.ground.KelvinVoigt(1e4, 10.0), "friction": legged.ground.Frictionless()},
        "legged.loops.pin_contacts": {"q": values["q"], "contacts": ["a_heel"]},
        "legged.simulation.loop_errors": {"closed": closed, "run": loop_run},
        "legged.simulation.loop_ranks": {"closed": closed, "run": loop_run},
        "legged.reduced_model": {name: np.tile(values[name], (2, 1)) for name in ("q", "v", "vdot")},
        "legged.denoc.floating_inverse_dynamics": {"joint_accelerations": np.zeros(values["robot"].nj)},
        "controllers.InvertedPendulum": {"height": 0.5, "start": -0.1, "speed": 0.5},
        "controllers.StepCommand": {"times": [0.1], "values": [0.2]},
        "legged.sensors.pressure_point": {"wrench": np.array([0.0, 0, 0, 0, 0, 10])},
        "legged.sensors.support_margin": {"point": np.array([0.2, 0.2, 0.0])},
        "controllers.Estimated": {"estimator": estimation.InvariantFilter()},
        "controllers.Policy": {"network": lambda seen: seen[:12], "task": environments.velocity(quadruped)},
        "controllers.suited": {"robot": quadruped},
        "controllers.suited_law": {"kind": controllers.Balanced, "gait": trot},
        "controllers.legs_of": {"robot": quadruped},
        "controllers.home_of": {"robot": quadruped},
        "controllers.Balanced": {"gait": trot},
        **{f"legged.{name}": {"twist": v6, "acceleration": v6} for name in ("conventional_acceleration", "spatial_acceleration")},
        "legged.motion_derivative": {"rate": v6, "motion": v6, "frame_twist": v6},
        "legged.force_derivative": {"rate": v6, "force": v6, "frame_twist": v6},
        "legged.ground.coefficient_of_restitution": {"law": legged.ground.KelvinVoigt(1e4, 10.0), "speed": 0.5},
        "controllers.ActuatorLimits": {"torque_limit": 10.0},
        "controllers.CommandedLaw": {"law": law_with_command, "command": controllers.SampledCommand([0.0, 1.0], [0.0, 0.5])},
        "controllers.CommandedPosture": {"command": controllers.SampledCommand([0.0, 1.0], np.zeros((2, values["robot"].nj)))},
        "controllers.SampledCommand": {"times": [0.0, 1.0], "values": [0.0, 0.5]},
        "controllers.LiveCommand": {"value": 0.5},
        "controllers.Delay": {"delay": 0.01},
        "controllers.NominalModel": {"model": values["robot"]},
        "controllers.SwitchedLaw": {"laws": [values["law"], values["law"]], "when": [1.0]},
        "controllers.PlanarBalance": {"robot": model.robot, "motion": {"knee": 1.0}},
        "controllers.LinearQuadraticBalance": {"model": model},
        "controllers.GyroscopicBalance": {"robot": robots.gyroscopic_pendulum()},
        "controllers.PartialLinearizationBalance": {"model": model},
        "controllers.UnactuatedMomentumBalance": {"model": model},
        "controllers.AngularMomentumControl": {"model": model},
        "controllers.SmoothCommand": {"steps": controllers.StepCommand([0.1], [0.2])},
        "legged.loops.serial_equivalent": {"closed": robots.five_bar_quadruped(), "motors": [f"{leg}_{side}_hip" for leg in ("FL", "FR", "RL", "RR") for side in ("front", "rear")], "near": BENT},
        "robots.star": {"legs": 3},
        "robots.tree": {"n": 5, "branching": 2.0},
        "robots.spatial_biped": {"mass": 65.0},
        "robots.four_bar": {"ground": 1.0, "crank": 0.4, "coupler": 0.9, "rocker": 0.7},
    }  # fmt: skip
    return special, loop_state


def _seen_simulation() -> legged.Simulation:
    """Return a simulation of a law that knows what a camera has seen."""
    law = controllers.Locomotion("trot", terrain=legged.ground.RollingHeightMap((20, 20), 0.05))
    robot = shared_quadruped()
    q, v = law.initial_state(robot)
    return legged.Simulation(robot, law, ground=legged.Rigid(), q=q, v=v)


def _group_arguments(robot: Any) -> dict[str, dict[str, Any]]:
    """Return the arguments of methods of a group with a robot named "a"."""
    return {
        "ancestors": {"body": 2}, "contact": {"name": f"a/{robot.contacts[0].name}"}, "link": {"name": "world"},
        "locked": {"values": {f"a/{robot.joints[0].name}": 0.1}}, "member": {"name": "a"}, "join_states": {"q": {}, "v": {}},
        "parameter_vector": {"names": ["a/trunk.mass"]}, "with_parameters": {"values": {"a/trunk.mass": 10.0}},
        "from_description": {"data": robot.describe()}, "without": {},
    }  # fmt: skip


def method_arguments(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the arguments of methods for which those of the usual names are not right, by class and name."""
    robot = values["robot"]
    contact = {"name": robot.contacts[0].name}
    quadruped = shared_quadruped()
    home = quadruped.neutral(), np.zeros(quadruped.nv)
    run_file = resolved(values["run"]).save(FOLDER / "saved_run.npz")
    rollouts = legged.rollout(robots.chain(1), until=0.02, vary={"robot.gravity": np.zeros((2, 3))})
    names = {"joint": robot.joints[0].name, "link": robot.links[1].name}
    bent, two, spinning = np.tile([0.0, 0.6, -1.2], 4), np.array([0.1, 0.2]), np.array([0.1, 0.2, 0.3])
    bend_swivel = controllers.BendSwivelBalance(robots.bend_swivel_robot())
    leaning = bend_swivel.balanced(0.2), np.zeros(bend_swivel.robot.nv)
    feet = controllers.FootKinematics(quadruped, ["leg1_foot"])
    attached = {"limb": legged.Limb().add(legged.Revolute("new", "y"), legged.Link("new")), "to": robot.links[0].name}
    placed = {"joint": legged.Revolute("new", "y"), "link": legged.Link("new"), "to": robot.links[0].name}
    steps = {
        "add": placed,
        "attach": attached,
        "link": {"link": placed["link"]},
        "joint": {"joint": placed["joint"], "parent": "base", "child": "new"},
    }
    heights = FOLDER / "heights.csv"
    heights.write_text("0,0\n0,0\n")
    walk = {"robot": quadruped, "ground": None, "q": home[0], "v": home[1]}
    return {
        "RollingHeightMap.write": {"robot": 0, "heights": np.zeros((4, 5))}, "RollingHeightMap.offset": {"x": 0.1, "y": 0.2}, "RollingHeightMap.slopes": {"x": 0.1, "y": 0.2},
        "DepthCamera.depths": {"terrain": legged.ground.Flat(), "rotation": np.eye(3), "position": np.array([0.0, 0.0, 0.5])},
        "DepthCamera.in_range": {"depths": np.ones(4)}, "DepthCamera.measured": {"depths": np.ones(4), "image": 0}, "Seeing.step": {}, "Seeing.look": {}, "Seeing.reset": {"q": _seen_simulation().q, "v": _seen_simulation().v},
        "HeightMap.from_file": {"path": heights, "width": 1.0}, "Table.to_csv": {"path": FOLDER / "table.csv"},
        "Follow.start": walk, "Recovery.start": walk,
        "Follow.waypoint": {"memory": np.zeros(2)}, "Recovery.mode": {"memory": np.zeros(3)},
        "Run.save_html": {"path": FOLDER / "run.html"}, "Rigid.coefficients": {"first": None, "second": None},
        "Ground.coefficients": {"first": None, "second": None},
        "Simulation.change": {"values": {"robot.trunk.mass": 4.0, "robot.gravity": np.zeros(3)}}, "Simulation.reset": {"q": values["q"], "v": values["v"], "where": [0]},
        "RobotEditor.change_robot": {"name": "b", "gravity": np.zeros(3), "base": legged.FloatingBase()}, "RobotEditor.rename": {"links": {"trunk": "body"}, "joints": {names["joint"]: "pitch"}, "contacts": {contact["name"]: "tip"}},
        "Simulation.change_controller": {"controller": None},
        "Locomotion.start": {"robot": quadruped, "ground": None, "q": home[0], "v": home[1]}, "Locomotion.initial_state": {"robot": quadruped},
        "RobotGroup.from_graph": {"graph": robot.graph},
        **{f"RobotGroup.{name}": given for name, given in _group_arguments(robot).items()},
        **{f"BendSwivelBalance.{name}": {"q": leaning[0], "v": leaning[1]} for name in ("state", "equations")},
        "BendSwivelBalance.angles": {"bend": 0.2, "direction": 0.1}, "BendSwivelBalance.balanced": {"bend": 0.2},
        "BendSwivelBalance.bending": {"q": leaning[0], "at": bend_swivel.equations(*leaning), "direction": 0.1},
        "BendSwivelBalance.center": {"q": leaning[0]},
        **{f"GyroscopicBalance.{name}": {"q": spinning, "v": spinning} for name in ("momentum", "wheel_momentum")},
        "GyroscopicBalance.time_constant": {"q": spinning},
        "*.start": {"robot": robot, "ground": None}, "*.reference": {"t": 0.1}, "*.feet": {"t": 0.1}, "*.base": {"t": 0.1},
        "*.plan": {"t": 0.1, "phase": 0}, "*.supporting": {"phase": 0}, "*.switches": {"until": 2.0},
        "*.height": {"x": 0.1, "y": 0.2}, "*.nearest": {"x": 0.1, "y": 0.2}, "*.normal": {"x": 0.1, "y": 0.2}, "*.state": {}, "*.named_state": {"q": values["q"], "v": values["v"]},
        "*.moved": {"rotation": np.eye(3), "position": np.zeros(3)}, "*.rest_penetration": {"load": 100.0},
        "Robot.contact": contact, "Robot.joint": {"name": names["joint"]}, "Robot.link": {"name": names["link"]},
        "Robot.ancestors": {"body": 2}, "Robot.locked": {"values": {names["joint"]: 0.1}},
        "Robot.parameter_vector": {"names": ["trunk.mass"]}, "Robot.with_parameters": {"values": {"trunk.mass": 10.0}},
        "ClosedRobot.parameter_vector": {"names": ["gravity"]}, "ClosedRobot.with_parameters": {"values": {"gravity": np.zeros(3)}},
        "Robot.from_description": {"data": robot.describe()}, "Robot.from_graph": {"graph": robot.graph}, "Robot.without": {},
        "Run.contact": contact, "Run.joint": {"name": names["joint"]}, "Run.at": {"t": 0.005}, "Readings.foot": contact,
        "Run.save": {"path": FOLDER / "run.npz"}, "RunningLaw.to_c": {"path": FOLDER / "law"}, "RunningLaw.step": {"t": 0.0, "q": robot.neutral(), "v": np.zeros(robot.nv), "wrenches": np.zeros((len(robot.links), 6))}, "Run.to_csv": {"path": FOLDER / "run.csv"}, "Rollouts.run": {"i": 0},
        "Ground.memory": {"n_points": 4}, "Ground.forces": {"points": np.zeros((4, 3)), "velocities": np.zeros((4, 3))},
        "Ground.penetration": {"points": np.zeros((4, 3))}, "FeedForward.reference_state": {"t": 0.1, "phase": 0},
        "OpenLoop.reference_state": {"t": 0.1, "phase": 0}, "InverseKinematics.solve": {"values": {"trunk": np.zeros(3)}},
        "InverseKinematics.solve_batch": {"values": {"trunk": np.zeros(3)}},
        "*.couple": {"follower": names["joint"], "master": robot.joints[1].name}, "ClosedRobot.close": {"joint": legged.Spherical("new"), "parent": "ground", "child": "coupler"}, "LoopBuilder.close": {"joint": placed["joint"], "parent": "base", "child": "base"},
        **{f"{kind}.{name}": given for kind in ("RobotBuilder", "LoopBuilder", "RobotEditor") for name, given in steps.items()}, "Limb.add": {k: placed[k] for k in ("joint", "link")},
        "ClosedRobot.with_rank_tolerance": {"rank_tolerance": 1e-5}, "ClosedRobot.closing_errors": {"q": np.zeros(3)},
        "ClosedRobot.loop": {"name": values["closed"].loops[0].name}, "ClosedRobot.cycle": {"name": values["closed"].loops[0].name},
        "SerialEquivalent.state": {"q": np.eye(23)[0], "v": np.zeros(22)}, "SerialEquivalent.rates": {"q": BENT},
        "SerialEquivalent.forces": {"q": BENT, "tau": np.zeros(14)}, "SerialEquivalent.wrenches": {"wrenches": np.zeros((17, 6))},
        "SerialEquivalent.configuration": {"q": BENT[[*range(7), *(7 + 4 * k + i for k in range(4) for i in (2, 3))]]},
        "ClosedRobot.bodies_around": {"name": values["closed"].loops[0].name},
        "Link.prefixed": {"prefix": "left_"}, "RobotEditor.change_contact": {**contact, "at": (0.0, 0.0, 0.0)},
        "RobotEditor.change_joint": {"name": names["joint"], "damping": 1.0, "at": (0.0, 0.0, 0.0), "rotation": np.eye(3)},
        "RobotEditor.change_link": {"name": names["link"], "mass": 2.0, "contacts": {"tip": (0.0, 0.0, 0.0)}, "shapes": []},
        "Fall.limits": {"robot": robot, "ground": values["ground"]}, "Fall.detector": {"robot": robot, "ground": values["ground"]},
        "Balanced.start": {"robot": quadruped, "ground": None, "q": home[0], "v": home[1]},
        "Balanced.initial_state": {"robot": quadruped}, "Policy.initial_state": {"robot": quadruped}, "Policy.kernel": {"robot": quadruped}, "Policy.to_c": {"robot": quadruped, "path": FOLDER / "policy"}, "Sweep.run": {"row": 0}, "Sweep.save": {"path": FOLDER / "study.parquet"}, "Policy.start": {"robot": quadruped, "ground": None, "q": home[0], "v": home[1]}, "NumericalGait.initial_state": {"robot": quadruped},
        "NumericalGait.on": {"robot": quadruped}, "FootKinematics.jacobian": {"angles": home[0][7:]},
        "FootKinematics.positions": {"angles": home[0][7:]},
        "FootKinematics.rates": {"angles": bent, "velocities": np.zeros((1, 3)), "accelerations": np.zeros((1, 3))},
        "FootKinematics.solve": {"targets": feet.positions(bent), "start": bent},
        "Noise.on": {"times": [0.0, 0.1], "readings": np.zeros((2, 3))}, "Readings.margin": {"points": np.zeros((2, 3))},
        "Audit.of": {"severity": "singular"},
        "PlanarBalance.balanced": {"positions": np.array([0.1])}, "PlanarBalance.joint_positions": {"q": two},
        **{f"PlanarBalance.{name}": {"q": two, "v": two} for name in ("state", "equations")},
        "PlanarBalance.center": {"q": two}, "PlanarBalance.reduced_inertia": {"q": two},
        "Run.body": {"name": "box"}, "StepCommand.sum_of": {"t": 0.1, "response": np.sin}, "LiveCommand.set": {"value": 0.7}, "Run.load": {"path": run_file},
        "Run.from_motion": {"robot": robot, "t": [0.0, 0.1, 0.3], "q": np.tile(values["q"], (3, 1))},
        "Run.from_csv": {"robot": robot, "path": resolved(values["run"]).to_csv(FOLDER / "motion.csv"), "columns": {"t": "t"}},
        "Rollouts.save": {"path": FOLDER / "runs.npz"}, "Rollouts.to_csv": {"path": FOLDER / "runs.csv"}, "Rollouts.load": {"path": rollouts.save(FOLDER / "saved_runs.npz")},
        "Crawl.on": {"robot": quadruped}, "Crawl.initial_state": {"robot": quadruped}, "Simulation.observe": {"function": state_of},
        "Simulation.advance": {"until": 0.002}, "Simulation.step": {}, "InvertedPendulum.sideways": {"period": 1.0, "start": 0.1, "height": 0.5},
    }  # fmt: skip
