"""One local Spark session for all tests of a run: two threads, three attempts of a task, nothing shown."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from functools import cache
from typing import Any

import pytest

from tetraodon.spark import has_java


@cache
def session() -> Any:
    """The session, or a skip by name."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if not has_java():
        pytest.skip("there is no Java")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark warns of new versions of pandas
        from pyspark.sql import SparkSession

        settings = {
            "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        builder = SparkSession.builder.master("local[2,3]").appName("tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        found = builder.getOrCreate()
        found.sparkContext.setLogLevel("OFF")
        found.sparkContext.pythonExec = sys.executable
        return found
