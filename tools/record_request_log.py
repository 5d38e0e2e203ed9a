"""
Records a request log for the tests of the replay: `python tools/record_request_log.py [--newest] NAME`.

Starts a real broker, sets quotas, lets real clients run into them, and writes `NAME-request.log.gz` and
`NAME-quotas.yaml` to `tests/pipeline/captures`. Needs what `make jars` fetches.
"""

import argparse
import gzip
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAPTURES = ROOT / "tests" / "pipeline" / "captures"


def main() -> int:
    """Record one log and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="such as kafka-4.4.0")
    parser.add_argument("--newest", action="store_true", help="the newest release")
    parser.add_argument("--other", action="store_true", help="the other limits")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--into", type=Path, default=CAPTURES)
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.cluster import throttled  # noqa: PLC0415 - the path is known only now
    from tests.cluster.cluster import Layout, Plugin, running  # noqa: PLC0415

    rules = throttled.OTHER_RULES if arguments.other else throttled.RULES
    special = Plugin(newest=arguments.newest, logs_requests=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Layout.COMBINED, Path(folder), plugin=special) as cluster,
    ):
        recording = throttled.record(cluster, rules, arguments.seconds)
    log = arguments.into / f"{arguments.name}-request.log.gz"
    log.write_bytes(gzip.compress(recording.log, 9))
    (arguments.into / f"{arguments.name}-quotas.yaml").write_text(recording.rules_yaml())
    print(f"{log}: {log.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
