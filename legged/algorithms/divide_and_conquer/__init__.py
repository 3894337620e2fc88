"""The divide-and-conquer articulated-body algorithm: forward dynamics in O(log n) depth, for parallel computers.

An assembly is a connected part of the robot. It interacts with the rest at its *handles*, the bodies with a joint that
leads out of it. Two assemblies and the joint between them form a larger assembly. Bodies are joined in pairs, pairs in
fours, and so on, so that the longest chain of dependent operations grows with the logarithm of the number of bodies if
the assemblies are balanced.

Acceleration constraints between bodies, such as those of `legged.loops`, are imposed in the first assembly that
contains all their bodies, which are handles until then.

The two versions differ in how they represent an assembly: `inverse` by the inverse inertias at its handles, `pivoted`
by the inertia at the handle nearest to the ground and the response to a given motion of that handle, which is more
accurate.

Source: Featherstone, "A divide-and-conquer articulated-body algorithm for parallel O(log(n)) calculation of rigid-body
dynamics", parts 1 and 2, International Journal of Robotics Research 18(9), 1999.
"""

from legged.algorithms.divide_and_conquer.assemblies import GROUND, BodyConstraints
from legged.algorithms.divide_and_conquer.forward import (
    VERSIONS,
    divide_and_conquer,
    forward_dynamics,
    inverse_inertia_matrix,
)

__all__ = ["GROUND", "VERSIONS", "BodyConstraints", "divide_and_conquer", "forward_dynamics", "inverse_inertia_matrix"]
