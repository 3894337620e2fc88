"""Gaps, frames and points of contact between shapes, and between shapes and terrain."""
