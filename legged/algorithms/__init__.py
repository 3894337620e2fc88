"""The algorithms of the field, each beside its equations, to compare with the modular framework of `legged.dynamics`.

    from legged.algorithms import articulated, composite, newton_euler
    newton_euler.inverse_dynamics(robot, q, v, vdot, coordinates="absolute")

Functions of one task have one name in every module and the arguments of `legged`'s own, so that any of them can be
counted, compiled and compared with any other.
"""
