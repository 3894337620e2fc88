"""Verification of the dynamics of any robot against the laws of mechanics and other programs: `legged.verify`."""

from legged.verification.checks import Check, Verification, verify

__all__ = ["Check", "Verification", "verify"]
