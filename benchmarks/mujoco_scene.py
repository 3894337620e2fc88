"""The biped on box feet and a block on the floor, in MuJoCo: what stands beside ours on rigid ground."""

from typing import Any
from xml.etree import ElementTree

import numpy as np

import controllers
import legged
import robots
from benchmarks.agreement import Disagreement
from benchmarks.mujoco_side import mujoco
from legged import conversions
from legged.contact import Box, FreeBody
from legged.files.mjcf_export import mjcf_of

FRICTION = 0.3
POSITION = (0.01, 0.0, 1.14)  # [m], of the trunk
EDGES = (0.1, 0.1, 0.1)  # [m], of the block
BLOCK = FreeBody("block", legged.box_inertia(1.8, EDGES), [Box(EDGES)], position=(0.6, 0.0, 0.05))
KP, KD = 1000.0, 100.0  # [N m/rad], [N m s/rad], of MuJoCo's servos
SETTLED = 2000
"""Steps after which the robot stands still."""
SUNK, CLOSE = 0.02, 1e-3
"""By how much its servos give way at most, [m]; relative, of the weight that contacts bear."""
LINK, THING, FLOOR = 1, 2, 4
"""Kinds of shapes, as bits."""
THICK = 0.02  # [m], of the boxes that are soles


class MujocoScene:
    """The biped and the block in MuJoCo, joints held by servos.

    Attributes:
        model, data: MuJoCo's. robot: Ours.
    """

    def __init__(self, step: float):
        module, self.robot = mujoco(), robots.spatial_biped()
        spec = module.MjSpec.from_string(ElementTree.tostring(mjcf_of(self.robot), encoding="unicode"))
        spec.option.timestep, spec.option.integrator = step, module.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = module.mjtCone.mjCONE_ELLIPTIC  # as ours
        _add_shapes(spec, self.robot)
        for joint in spec.joints:
            if joint.type != module.mjtJoint.mjJNT_FREE:
                motor = spec.add_actuator(target=joint.name, trntype=module.mjtTrn.mjTRN_JOINT)
                motor.set_to_position(kp=KP, kv=KD)
        alone = spec.compile()
        q, _ = controllers.WorkspaceBalance(POSITION).initial_state(self.robot)
        qpos = conversions.mujoco(self.robot, alone).to_configuration(q)
        body = spec.worldbody.add_body(name=BLOCK.name, pos=list(BLOCK.position), mass=BLOCK.inertia.mass)
        body.add_freejoint()
        body.add_geom(**_box(np.array(EDGES) / 2, np.zeros(3), THING), mass=BLOCK.inertia.mass)
        self.model = spec.compile()
        self.data = module.MjData(self.model)
        self.data.qpos[: len(qpos)], self.data.ctrl[:] = qpos, qpos[7:]

    @property
    def state(self) -> np.ndarray:
        """[time, qpos, qvel] of `data`."""
        return np.concatenate([[self.data.time], self.data.qpos, self.data.qvel])

    def lift(self) -> float:
        """Return the sum of all contacts' normal forces, [N]."""
        wrench, total = np.zeros(6), 0.0
        for i in range(self.data.ncon):
            mujoco().mj_contactForce(self.model, self.data, i, wrench)
            total += wrench[0]
        return total


def settled(step: float) -> MujocoScene:
    """Return the scene once the biped stands still.

    Raises:
        Disagreement: It does not stand as ours does: on twelve contacts that bear the weight, where it began.
    """
    scene = MujocoScene(step)
    height = float(scene.data.qpos[2])
    mujoco().mj_step(scene.model, scene.data, SETTLED)
    sunk = height - float(scene.data.qpos[2])
    weight = (scene.robot.mass + BLOCK.inertia.mass) * float(np.linalg.norm(scene.robot.gravity))
    if scene.data.ncon != 12 or abs(sunk) > SUNK or abs(scene.lift() / weight - 1.0) > CLOSE:
        raise Disagreement(
            f"in MuJoCo the biped sank by {sunk:.3g} m on {scene.data.ncon} contacts that bear {scene.lift():.4g} N of "
            f"{weight:.4g} N"
        )
    return scene


def _add_shapes(spec: Any, robot: legged.Robot) -> None:
    """Add the floor, a box under each foot, and the boxes of links."""
    floor = {"type": mujoco().mjtGeom.mjGEOM_PLANE, "size": [50, 50, 1], "contype": FLOOR, "conaffinity": 7 - FLOOR}
    spec.worldbody.add_geom(**floor, friction=[FRICTION, 0.005, 0.0001])
    for link in robot.links:
        points = np.array([contact.position for contact in robot.contacts if contact.link == link.index])
        if len(points):
            low, high = points.min(axis=0), points.max(axis=0) + THICK * np.eye(3)[2]
            spec.body(link.name).add_geom(**_box((high - low) / 2, (high + low) / 2), mass=0)
        for shape in link.shapes:
            if isinstance(shape, Box):
                spec.body(link.name).add_geom(**_box(shape.half, np.asarray(shape.center)), mass=0)


def _box(half: np.ndarray, center: np.ndarray, kind: int = LINK) -> dict[str, Any]:
    """Return a box of a kind, which meets all things of other kinds."""
    place = {"size": half.tolist(), "pos": center.tolist(), "friction": [FRICTION, 0.005, 0.0001]}
    return {"type": mujoco().mjtGeom.mjGEOM_BOX, "contype": kind, "conaffinity": 7 - kind, **place}
