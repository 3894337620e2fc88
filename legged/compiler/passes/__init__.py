"""Passes on a graph: functions that take a graph and return another one, an order of computation, or a plan for code.

pipeline           all passes in order; the only caller of each
differentiate      rows of the Jacobian of a graph
drop_terms         drop terms of sums that contribute little
simplify           factor common factors out of sums
counting           operation counts by kind, stage and module
quaternion_checks  checks of the norm of quaternions, before code generation
call_batching      batches of elementary functions whose arguments are known at the same time
slp                packs of equal operations of alike modules, for one state
outline            templates of alike segments, SIMD bundles of them, and the memory plan, for large graphs
registers          order of long kernels, and numbers that are in memory between their uses
scheduling         fuse multiplications into additions; order of computation: short live ranges
jacobian           Jacobian of a traced function, for users
"""
