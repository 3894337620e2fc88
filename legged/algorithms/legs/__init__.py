"""Legs of robots: their chains of joints, the inverse kinematics of feet, and standing postures."""
