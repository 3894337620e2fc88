"""Locomotion of many robots: commanded and reached velocities, disturbances, imperfections, MuJoCo, throughput."""
