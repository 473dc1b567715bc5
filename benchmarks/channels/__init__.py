"""Channels beside their peers: ``python -m benchmarks.channels.least_leaking``, ``….least_distortion``, ``….bayes``."""

import os

# More BLAS threads than free cores spin instead of working; set before numpy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
