"""Helpers of the tests: seeded cases, finite differences, and models built in outside engines."""
