"""Locomotion of many robots: velocities, disturbances, stops, imperfections, MuJoCo, throughput."""
