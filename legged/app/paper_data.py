"""Numbers that the paper or its authors' programs report, to compare with.

Sources: the output that the authors' toolbox ships for its quadruped (computed torque, swing height 0.09 m, forward x,
left y, up z here; angles roll, pitch, yaw of R = Rx Ry Rz), and, for the planar biped, which it does not ship, an
independent computation with the same ground law and prescribed joints.
"""

from __future__ import annotations

QUADRUPED = {  # t: x, y, z [m], roll, pitch, yaw [rad]
    0.0: (-0.15, 0.0, 0.5, 0.0, 0.0, 0.0),
    0.5: (-0.007554, 0.016987, 0.492386, -0.034039, -0.016653, -0.000254),
    2.0: (0.427204, -0.000350, 0.498376, 0.000337, 0.000425, -0.000061),
}
BIPED = {  # t: x, z [m], pitch, nose down [degree]
    0.5: (-0.0073, 1.2029, -0.36),
    1.0: (0.1809, 1.2152, 2.84),
    2.0: (0.4104, 1.2093, 0.17),
    4.0: (0.9665, 1.2072, -0.65),
}
