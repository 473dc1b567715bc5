"""Benchmarks: measured, never part of the package. README.md lists the commands."""
