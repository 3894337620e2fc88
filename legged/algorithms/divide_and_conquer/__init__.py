"""The divide-and-conquer articulated-body algorithm: forward dynamics in O(log n) depth, for parallel computers.

An assembly is a connected part of the robot. It meets the rest at its *handles*, bodies with a joint that leads out of
it. Two assemblies and the joint between them are an assembly again. Bodies come together in pairs, pairs in fours: what
depends on each other is as many steps as that takes, the logarithm of the bodies if the parts are balanced.

Loops of a `legged.loops.ClosedRobot` are closed in the first assembly that has both ends, whose bodies are handles
until then.

Two versions differ in what an assembly tells of itself: `inverse` the inverse inertias at its handles, `pivoted` the
inertia at the handle towards the ground and the rest for a known motion of that handle, which is more accurate.

Source: Featherstone, "A divide-and-conquer articulated-body algorithm for parallel O(log(n)) calculation of rigid-body
dynamics", parts 1 and 2, International Journal of Robotics Research 18(9), 1999.
"""

from legged.algorithms.divide_and_conquer.forward import VERSIONS, forward_dynamics

__all__ = ["VERSIONS", "forward_dynamics"]
