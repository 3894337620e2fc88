"""Policies that learn tasks: a learner, training with checkpoints, evaluation, export, and adapters for other learners.

The modules need the extra `train`, and are imported by name. See docs/howto/learning.md.
"""
