"""Groups and channels for microdata measured: what leaks, what attackers find, what it costs in time and memory.

Run from the checkout's root, for example ``python -m benchmarks.microdata.compare``. The real data are not shipped; they are
looked for in the folder named by TETRAODON_DATA, and what needs them is skipped by name without it.
"""
