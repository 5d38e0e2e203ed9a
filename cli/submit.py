"""
A command of quotascope as an application of Spark: ``spark-submit submit.py whatif …``.

``quotascope spark submit-script`` prints the path of this file. Command line and results are those of ``quotascope``.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command in the session that spark-submit has configured."""
    # removes the folder of this file from the path, since its modules have common names
    del sys.path[0]
    sys.argv[0] = "quotascope"
    from quotascope.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
