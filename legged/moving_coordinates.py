"""Six-dimensional vectors in moving coordinates: derivatives, and the two accelerations of a rigid body.

A motion vector m = [angular; linear] or a force vector f = [moment; force] is written in the Pluecker coordinates of a
frame, its origin and axes. If the frame moves with the twist w = [omega; v], the derivative of the vector is the
derivative of its components, the apparent derivative, plus the change of the coordinates:

    dm/dt = m' + w x m,     w x m  = [omega x m_1; omega x m_2 + v x m_1]
    df/dt = f' + w x* f,    w x* f = [omega x f_1 + v x f_2; omega x f_2]

The *spatial* acceleration of a body is the derivative of its twist as a vector. The *conventional* one,
[omega dot; acceleration of the body's origin], is the apparent derivative in a frame that translates with the origin
and does not rotate. Spatial accelerations add up along a chain of bodies; conventional ones do not.

Source: Featherstone, "The acceleration vector of a rigid body", International Journal of Robotics Research 20(11),
2001; "Plucker basis vectors", International Conference on Robotics and Automation, 2006; "A beginner's guide to 6-D
vectors", IEEE Robotics and Automation Magazine 17(3) and 17(4), 2010. Only the abstracts were available: the statement
about the conventional acceleration is from that of 2001, and the equations are derived here.
"""

from __future__ import annotations

from legged.arguments import array
from legged.checked import checked
from legged.elements import any_element
from legged.spatial import Array, cross, join


@any_element
@checked
def conventional_acceleration(twist: Array, acceleration: Array) -> Array:
    """Return [omega dot; v dot + omega x v], (6,), [rad/s^2, m/s^2], from a body's spatial acceleration.

    Args:
        twist: Twist of the body at the origin of a frame, (6,), [rad/s, m/s], in the frame's axes.
        acceleration: Spatial acceleration [omega dot; v dot], (6,), [rad/s^2, m/s^2], in the same coordinates.
    """
    t, a = array("twist", twist, (6,)), array("acceleration", acceleration, (6,))
    return join(a[:3], a[3:] + cross(t[:3], t[3:]))


@any_element
@checked
def spatial_acceleration(twist: Array, acceleration: Array) -> Array:
    """Return the spatial acceleration [omega dot; a - omega x v], (6,), [rad/s^2, m/s^2], from the conventional one.

    For a frame fixed to the body this is the rate of the twist's components.

    Args:
        twist: Twist of the body at the origin of a frame, (6,), [rad/s, m/s], in the frame's axes.
        acceleration: Conventional acceleration [omega dot; acceleration a of the body's point at the origin], (6,),
            [rad/s^2, m/s^2], in the same axes.
    """
    t, a = array("twist", twist, (6,)), array("acceleration", acceleration, (6,))
    return join(a[:3], a[3:] - cross(t[:3], t[3:]))


@any_element
@checked
def motion_derivative(rate: Array, motion: Array, frame_twist: Array) -> Array:
    """Return the derivative of a motion vector, (6,), [any unit per s], written in the moving frame's coordinates.

    Args:
        rate: Derivative of the components, (6,), [any unit per s].
        motion: Motion vector, (6,), [any unit], in the frame's coordinates.
        frame_twist: Twist of the frame, (6,), [rad/s, m/s], in its own coordinates.
    """
    w, m = array("frame_twist", frame_twist, (6,)), array("motion", motion, (6,))
    return array("rate", rate, (6,)) + cross_motion(w, m)


@any_element
@checked
def force_derivative(rate: Array, force: Array, frame_twist: Array) -> Array:
    """Return the derivative of a force vector, (6,), [any unit per s], written in the moving frame's coordinates.

    Args:
        rate: Derivative of the components, (6,), [any unit per s].
        force: Force vector, such as a wrench or a momentum, (6,), [any unit], in the frame's coordinates.
        frame_twist: Twist of the frame, (6,), [rad/s, m/s], in its own coordinates.
    """
    w, f = array("frame_twist", frame_twist, (6,)), array("force", force, (6,))
    return array("rate", rate, (6,)) + cross_force(w, f)


def cross_motion(t: Array, m: Array) -> Array:
    """Return t x m, (6,), the rate of a motion vector fixed to a body.

    Args:
        t: Twist of the body, (6,), mixed units. m: Motion vector, (6,), mixed units, in the same axes.
    """
    return join(cross(t[:3], m[:3]), cross(t[:3], m[3:]) + cross(t[3:], m[:3]))


def cross_force(t: Array, f: Array) -> Array:
    """Return t x* f, (6,), the rate of a force vector fixed to a body.

    Args:
        t: Twist of the body, (6,), mixed units. f: Force vector, (6,), mixed units, in the same axes.
    """
    return join(cross(t[:3], f[:3]) + cross(t[3:], f[3:]), cross(t[:3], f[3:]))
