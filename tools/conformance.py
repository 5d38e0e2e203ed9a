"""
Runs a file of conformance vectors: `python tools/conformance.py FILE`.

Prints a line for each vector that does not pass, with the reason, and `N passed, N failed` at the end. Exit code 0
when all pass, 1 when some do not, 2 when the file cannot be read.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the suite is shared with the tests

from tests.conformance.fields import Malformed  # noqa: E402 - needs the path
from tests.conformance.suite import load, outcomes  # noqa: E402

from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease  # noqa: E402


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("file", type=Path, help="JSON with an array `vectors`")
    parser.add_argument(
        "--kafka-version",
        type=KafkaRelease.parse,
        default=NEWEST_RELEASE,
        metavar="VERSION",
        help="the release with the expected answers, such as 4.3; the newest by default",
    )
    arguments = parser.parse_args()
    path = arguments.file
    try:
        vectors = load(path)
    except Malformed as malformed:
        print(f"conformance: {malformed}", file=sys.stderr)
        return 2
    failed = 0
    for vector, failure in outcomes(vectors, arguments.kafka_version):
        if failure is not None:
            failed += 1
            print(f"FAILED {vector.name!r} ({vector.kind!r}): {failure}")
    print(f"{len(vectors) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
