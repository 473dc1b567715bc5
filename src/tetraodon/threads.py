"""How many threads linear algebra takes."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """One BLAS thread where ``threadpoolctl`` is installed: on matrices of some hundred rows, and beside other work, more of them wait for
    each other instead of working."""
    try:
        pools = importlib.import_module("threadpoolctl")
    except ImportError:
        return contextlib.nullcontext()
    found: contextlib.AbstractContextManager[Any] = pools.threadpool_limits(1)
    return found
