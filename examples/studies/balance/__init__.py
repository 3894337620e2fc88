"""Studies of balance: thrown blocks, disturbance maps, planar and spatial machines on a point, hybrid control."""
