"""Channels: laws by which the value of each record is replaced before it leaves."""
