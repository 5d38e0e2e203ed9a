"""
Facts of Kafka's releases, read from their classes and kept here as JSON: our tables are checked against them.

`tests/differential/test_recorded.py` fails when a file differs from the jars, and rewrites it with `--update-golden`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from quotascope.metrics.kafka.release import KafkaRelease

FOLDER = Path(__file__).parent
RELEASES = (KafkaRelease(4, 3), KafkaRelease(4, 4))


def path_of(release: KafkaRelease) -> Path:
    return FOLDER / f"kafka-{release}.json"


@cache
def facts(release: KafkaRelease) -> Any:
    return json.loads(path_of(release).read_text(encoding="utf-8"))


def key_of(name: str) -> int:
    """Number of an API by its name in the newest release."""
    number: int = facts(RELEASES[-1])["apis"][name]["key"]
    return number
