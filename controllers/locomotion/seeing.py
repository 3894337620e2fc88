"""A simulation in which robots plan footsteps on an elevation map that is built from images of a depth camera.

    known = legged.ground.RollingHeightMap((96, 96), 0.025)                         # [m]
    law = controllers.Estimated(controllers.Locomotion(terrain=known), legged.estimation.InvariantFilter())
    sim = legged.Simulation(robot, law, ground=legged.Rigid(), integrator=legged.TimeStepping(2e-3))
    seeing = controllers.Seeing(sim, legged.sensors.DepthCamera("trunk"))
    seeing.step(n=500)

Images are taken between the time steps of a `legged.Simulation`, which run in machine code: rays are cast from the true
pose of the camera onto the terrain of the simulation, their points are placed by the estimated pose, update an
`ElevationMap` of each robot, and the heights and the nearest footholds are written to the `RollingHeightMap` that the
law reads. This part, 15 times a second, is plain Python; only the casting of rays is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from controllers.estimated import Estimated
from controllers.locomotion.gait.footholds import foothold_planes, nearest_footholds
from controllers.locomotion.gait.footsteps import plane_of
from controllers.locomotion.started_locomotion import StartedLocomotion
from legged import arguments
from legged.arguments import Numbers
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.dynamics.frames import frame_pose
from legged.dynamics.kinematics import point_motion
from legged.errors import DefinitionError, TraceError
from legged.estimation.elevation_map import ElevationMap
from legged.ground.rolling_height_map import RollingHeightMap
from legged.ground.terrain import Flat
from legged.robot.robot import Robot
from legged.rotations import heading
from legged.sensors.depth_camera import DepthCamera, depth_along
from legged.simulation.stepping.commands import selected_robots
from legged.simulation.stepping.simulation import Simulation
from legged.spatial import Array

_START = 1.5  # [h], radius of the ground that the robot takes as the plane through its feet before the first image
_START_DEVIATION = 0.05  # [h], standard deviation of its heights
_AROUND = 0.5  # [h], distance within which the lowest seen height is that of an unseen cell
_LEAST = 1e-3  # [m], standard deviation of the height of a point without noise


@checked
class Seeing:
    """A `legged.Simulation` of `Locomotion` on a `RollingHeightMap`, with a depth camera that fills this map.

    A robot starts with the plane through its feet as the ground within 1.5 h, where h is the height of its center of
    mass. For a cell that it has not seen, such as one behind an edge, it takes the lowest height that it has seen
    within 0.5 h, and plans no footholds on it. The points of an image are placed by the pose that the law knows: that
    of `Estimated`, whose errors and drift are then in the map, and otherwise the true one. The body of the robot does
    not hide the ground.

    Args:
        simulation: One robot or many, at most as many as the map of the law has; each of them reads its own.
        camera: The camera; its rate is rounded to a whole number of time steps.
        tilt: Standard deviation of the estimated roll and pitch, [rad].
        vertical, horizontal: As in `ElevationMap`, [m / sqrt(s)].

    Attributes:
        maps: The `ElevationMap` of each robot.

    Raises:
        DefinitionError: The controller is not `Locomotion` on a `RollingHeightMap`, the map has fewer robots than the
            simulation, or the ground of the simulation has the map of the law as its terrain.
        UnknownNameError: The frame of the camera does not exist.
    """

    def __init__(
        self,
        simulation: Simulation,
        camera: DepthCamera,
        *,
        tilt: float = 0.004,
        vertical: float = 0.003,
        horizontal: float = 0.003,
    ):
        self.simulation, self.camera = simulation, camera
        self.tilt = arguments.number("tilt", tilt, "rad", least=0.0)
        self._law, self._estimate = _parts(simulation)
        known, terrain = self._law.terrain, getattr(simulation.loop.ground, "terrain", Flat())
        count = len(np.atleast_2d(simulation.q))
        if not isinstance(known, RollingHeightMap) or known.count < count or terrain is known:
            raise DefinitionError(
                f"Seeing fills the map of a law: give Locomotion(terrain=RollingHeightMap(shape, spacing, {count})), "
                f"and the simulation another terrain, got {known} and {terrain}"
            )
        self._known = known
        if count > 1:
            names = [
                name
                for name in simulation.parameters
                if name.startswith("controller.") and name.endswith("terrain.robot")
            ]
            simulation.change({name: np.arange(float(count)) for name in names})
        drift = {"vertical": vertical, "horizontal": horizontal}
        self.maps = tuple(ElevationMap(known.shape, known.spacing, **drift) for _ in range(count))
        self._images, self._times = 0, np.full(count, np.inf)
        self._period = max(round(1.0 / (camera.rate * simulation.time_step)), 1)
        frame, feet = camera.frame, [(foot.link, foot.sole) for foot in self._law.planner.feet]

        def poses(robot: Robot, q: Array) -> tuple[Array, Array, Array]:
            rotation, position = frame_pose(robot, q, frame)
            return rotation, position, point_motion(robot, q, np.zeros(robot.nv), feet)[0]

        def depth(origin: Array, direction: Array) -> Any:
            return depth_along(terrain, origin, direction, camera.far, camera.step)

        self._poses = compile_function(poses, simulation.robot)
        try:
            self._depth: Any = compile_function(depth, None, origin=(3,), direction=(3,))
            self._depth(np.zeros(3), np.zeros(3))
        except TraceError:
            self._depth = None
        self.look()

    def step(self, command: Any = None, n: int = 1) -> None:
        """Advance the simulation by n time steps, with an image after each period of the camera.

        Args:
            command: As in `Simulation.step`, whose errors are those of this method. n: Number of time steps.
        """
        left = arguments.whole("n", n, 1)
        while left:
            k = min(left, self._left)
            self.simulation.step(command, k)
            left, self._left = left - k, self._left - k
            if not self._left:
                self.look()

    def reset(self, q: Numbers | None = None, v: Numbers | None = None, *, where: Any = None) -> None:
        """Start some or all robots again, with new maps and an image; use it in place of `Simulation.reset`.

        Args:
            q: Configurations, (nq,) or (N, nq), mixed units. v: Velocities, (nv,) or (N, nv), mixed units.
            where: Mask or indices of the robots, as in `Simulation.reset`, whose errors are those of this method.
        """
        self.simulation.reset(q, v, where=where)
        self._times[selected_robots(where, self.simulation.num)] = np.inf
        self.look()

    def look(self) -> None:
        """Take a depth image for each robot, update its elevation map, and write that to the map of its control law.

        The next image follows one period later.
        """
        sim, times = self.simulation, np.array(self.simulation.t, ndmin=1)
        q = np.atleast_2d(sim.q)
        estimate = q if self._estimate is None else np.atleast_2d(sim.observe(self._estimate))
        rotation, position, _ = self._poses(q)
        believed = self._poses(estimate)
        depths = self._depths(rotation, position)
        for i in np.flatnonzero(~np.atleast_1d(sim.ended)).tolist():
            if times[i] < self._times[i]:
                self._start(i, believed[2][i], estimate[i])
            else:
                self.maps[i].predict(times[i] - self._times[i])
            self._see(i, believed[0][i], believed[1][i], depths[i], estimate[i])
            self._times[i] = times[i]
        self._images, self._left = self._images + 1, self._period

    def _depths(self, rotation: Array, position: Array) -> Array:
        """Return the measured depths of all cameras, (N, k), [m]; zero for missing ones."""
        camera, terrain = self.camera, self.simulation.loop.ground.terrain
        if self._depth is None:
            true = np.array([camera.depths(terrain, *pose) for pose in zip(rotation, position, strict=True)])
        else:
            rays = camera.directions @ np.swapaxes(rotation, 1, 2)
            origins = np.broadcast_to(position[:, None], rays.shape)
            true = camera.in_range(np.reshape(self._depth(origins, rays), rays.shape[:2]))
        return camera.measured(true, self._images)

    def _start(self, i: int, feet: Array, q: Array) -> None:
        """Let the map of robot i contain the plane through its feet, which are at estimated places, (n, 3), [m]."""
        h, own, place = self._law.height, self.maps[i], self._place(q)
        own.move(place)
        plane, centers = plane_of(list(feet), h), own.centers()
        heights = plane.point[2] + np.tensordot(plane.slope, centers - plane.point[:2, None, None], 1)
        near = ((centers - place[:, None, None]) ** 2).sum(axis=0) < (_START * h) ** 2
        own.heights, own.variance = np.where(near, heights, np.nan), np.where(near, (_START_DEVIATION * h) ** 2, np.nan)

    def _place(self, q: Array) -> Array:
        """Return world x and y of the base, (2,), [m]."""
        base = self._law.robot.base
        return base.pose(q[: base.nq])[1][:2]

    def _see(self, i: int, rotation: Array, position: Array, depths: Array, q: Array) -> None:
        """Update the map of robot i with an image from an estimated pose, and write it to that of the law."""
        h, sole, own = self._law.height, self._law.feet_plan.sole, self.maps[i]
        own.move(self._place(q))
        valid = depths > 0.0
        d, rays = depths[valid], self.camera.directions[valid] @ rotation.T
        offsets = d[:, None] * rays
        variances = (self.camera.noise * d * d * rays[:, 2]) ** 2 + _LEAST**2
        own.update(position + offsets, variances, self.tilt**2 * (offsets[:, :2] ** 2).sum(axis=1))
        heights, distance = own.filled(_AROUND * h)
        forward = heading(self._law.robot.base.pose(q[: self._law.robot.base.nq])[0])
        free, slopes = foothold_planes(heights, own.spacing, h, sole, forward)
        layers = nearest_footholds(free & (distance == 0.0), slopes, own.spacing, h)
        heights, *layers = np.roll([heights, *layers], own.corner % np.array(own.shape), axis=(1, 2))
        self._known.write(i, heights, layers[:2], layers[2:])


def _parts(simulation: Simulation) -> tuple[StartedLocomotion, Any]:
    """Return the started `Locomotion` of a simulation, and a function of the memory that returns the estimated q."""
    law: Any = simulation.loop.controller
    start, estimate = 0, None
    while not isinstance(law, StartedLocomotion):
        if isinstance(law, Estimated):
            estimate = _estimate_of(law, start)
        start += getattr(law, "_size", 0)
        law = getattr(law, "law", getattr(law, "controller", None))
        if law is None:
            raise DefinitionError("Seeing needs a simulation whose controller is Locomotion, also in wrappers")
    return law, estimate


def _estimate_of(law: Estimated, start: int) -> Any:
    """Return the function (memory of a loop) -> estimated q of the wrapper whose memory starts at an entry."""

    def estimate(memory: Array) -> Array:
        return law.estimate(memory[start:])[0]

    return estimate
