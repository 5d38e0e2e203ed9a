"""Recommended limits as a script for bash and as Strimzi's manifests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas import Commands, Manifests, QuotaSet, RuleChange, kafka_users

_HEAD: Final = """\
#!/usr/bin/env bash
# Written by `quotascope recommend`, which has run none of it: read it first. kafka-configs.sh must be on the PATH.
set -euo pipefail
export LC_ALL=C.UTF-8 # for names that are not ASCII: bash and Java read them by the locale
"""


class Commanded(Protocol):
    """Recommended limits of which some may become commands."""

    @property
    def target(self) -> QuotaSet:
        """Quotas after the recommended changes."""

    @property
    def commanded(self) -> tuple[RuleChange, ...]:
        """Changes that may become commands."""


def script_of(commands: Commands, caveats: Sequence[str] = ()) -> str:
    """
    Return a script for bash with one command for each entity.

    Its comments hold the caveats, and what no command line can express.
    """
    made_of = (f"# {sentence}" for sentence in caveats)
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    return "\n".join((_HEAD, *made_of, *left_out, *commands.lines, ""))


def manifests(advice: Commanded, cluster: str) -> Manifests:
    """
    Return Strimzi's `KafkaUser` for each user with a changed quota, with all of its quotas.

    Percentages of request time are rounded up: there they are whole numbers.
    """
    whole = {
        entity: {
            key: float(math.ceil(value)) if key == QuotaType.REQUEST.quota_key and math.isfinite(value) else value
            for key, value in values.items()
        }
        for entity, values in advice.target.items()
    }  # fmt: skip
    changed = {change.entity for change in advice.commanded}
    return kafka_users(QuotaSet(whole), cluster=cluster, only=changed)
