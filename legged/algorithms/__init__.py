"""Classical algorithms of rigid-body dynamics, for comparison with the modular framework of `legged.dynamics`.

    from legged.algorithms import articulated, composite, newton_euler
    newton_euler.inverse_dynamics(robot, q, v, vdot, coordinates="absolute")

Functions of one task take the arguments of the function in `legged`, so that any of them can be counted, compiled and
compared with any other. Forward dynamics have the name of their algorithm, such as `articulated.articulated_body`, and
in every module also that of the task, `forward_dynamics`.
"""
