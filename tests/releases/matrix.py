"""
Runs the scenes of all releases, fetches what they need, and writes what works.

`python -m tests.releases.matrix [versions]`.

The results of the releases that ran replace those in `results.json`, from which `tools/generate_docs.py` makes the
table of docs/start/dialects.md.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.cluster import provision
from tests.releases.observed import RELEASES

RESULTS: Final = Path(__file__).parent / "results.json"


def main(versions: list[str]) -> int:
    """0 when everything works with all of these releases, or with all there are."""
    versions_known = [release.version for release in RELEASES]
    if unknown := set(versions) - set(versions_known):
        sys.stderr.write(
            f"matrix: no scene of Kafka {', '.join(sorted(unknown))}; there are {', '.join(versions_known)}\n"
        )
        return 1
    chosen = versions or versions_known
    if provision.main() or provision.main(chosen):
        return 1
    codes = []
    for version in chosen:  # each in a run of its own: what one breaks is not in the way of another
        sys.stdout.write(f"=== Kafka {version}\n")
        sys.stdout.flush()
        environ = {**os.environ, "QUOTASCOPE_KAFKA_RELEASES": version, "QUOTASCOPE_KAFKA_RESULTS": str(RESULTS)}
        command = [sys.executable, "-m", "pytest", "-m", "real", "tests/releases"]
        codes.append(subprocess.run(command, env=environ, check=False).returncode)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
