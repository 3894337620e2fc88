"""The numbers of a robot by name, and robots with other numbers, which may be traced.

`names` lists the parameters (`Robot.parameters`) and makes vectors of them (`Robot.parameter_vector`), `checks` refuses
values that no robot has, `replacement` returns the robot with other values (`Robot.with_parameters`).

`RobotEditor` builds a new robot with frames that suit it. `with_parameters` keeps the frames of the bodies, so that its
steps do not depend on the values: inertial parameters, friction, limits, rotors, gravity and positions of joints can be
inputs of a kernel. A body's frame needs its origin on the joint's axis and its z along it, which other positions
preserve.
"""

from legged.robot.construction.parameters.names import ParameterVector, base_fields, parameters
from legged.robot.construction.parameters.replacement import with_parameters

__all__ = ["ParameterVector", "base_fields", "parameters", "with_parameters"]
