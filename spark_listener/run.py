"""
Runner of a job that does not import quotascope.

``spark-submit --conf spark.quotascope.enabled=true run.py job.py arguments…``.

``quotascope spark runner`` prints where this file is.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the script that the first argument names, as Python would, after `enable`."""
    if len(sys.argv) < 2:  # noqa: PLR2004 - our own name is one
        raise SystemExit(f"usage: spark-submit --conf spark.quotascope.enabled=true {__file__} job.py [arguments…]")
    script = Path(sys.argv[1])
    # The folder of this file must not be on the path: modules of the job may have the same names.
    sys.path[0] = str(script.resolve().parent)
    del sys.argv[0]
    from quotascope.spark_listener import enable  # noqa: PLC0415 - after the path was put right

    enable()
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
