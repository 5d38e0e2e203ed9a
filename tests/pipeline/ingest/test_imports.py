"""Modules that ingest brings in: each takes time before the first line is read."""

import subprocess
import sys


def test_ingest_needs_no_compiler_and_no_spark() -> None:
    """An ingest imports neither Spark nor Numba, which takes as long as all other imports together."""
    code = "import sys, quotascope.pipeline.runs.ingest; print({'numba', 'pyspark', 'pandas'} & {*sys.modules})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
