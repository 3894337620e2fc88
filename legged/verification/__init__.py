"""Checks of any robot's dynamics against their own laws and against other programs, for users: `legged.verify`."""

from legged.verification.checks import Check, Verification, verify

__all__ = ["Check", "Verification", "verify"]
