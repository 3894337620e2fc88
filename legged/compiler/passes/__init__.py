"""Passes on a graph: functions that take a graph and return another one, an order of computation, or a plan for code.

simplify           factor common factors out of sums
differentiate      Jacobian of a traced function
hoist              loop-invariant code motion out of the loop over time steps
quaternion_checks  checks of the norm of quaternions, before code generation
counting           operation counts by kind, stage and module
call_batching      batches of elementary functions whose arguments are known at the same time
scheduling         fuse multiplications into additions; order of computation: short live ranges, few stalls
slp                packs of equal operations of alike modules, for one state
outline            templates of alike segments, SIMD bundles of them, and the memory plan, for large graphs
"""
