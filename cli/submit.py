"""
Runs a command of quotascope as an application of Spark: ``spark-submit submit.py whatif …``.

``quotascope spark submit-script`` prints where this file is. Command line and results are those of ``quotascope``.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; the session is the one that spark-submit has configured."""
    # The folder of this file has no business there: its modules are called as anybody's might be.
    del sys.path[0]
    sys.argv[0] = "quotascope"
    from quotascope.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
