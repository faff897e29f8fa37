"""Measurements. Not part of the test run: ``python -m tests.benchmarks.core`` and the like."""
