"""Helpers of the tests: random cases, finite differences, and models in other engines."""
