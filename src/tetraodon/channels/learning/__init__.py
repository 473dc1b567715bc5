"""Learned channels: samples, generators, training loops, bounds and judges (docs/learned.md)."""
