"""Driving a live simulation by keys, gamepad and clicks."""
