"""A rules file for jmx_exporter, out of the mapping table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import yaml

from quotascope.metrics.catalog import FamilyType

from .naming import NAMES, TAGS, Name
from .pattern import pattern_of

_HEAD: Final = """\
# Rules for jmx_exporter, written by `quotascope rules jmx-exporter`: Kafka's quotas under the names and units of quotascope.
#
#   java -javaagent:jmx_prometheus_javaagent.jar=9404:THIS_FILE ...
#
# quotascope reads the page like every other source (dialect quotascope_rules), and adds what no broker tells: limits,
# rules, utilisation and causes. Where Prometheus scrapes the page itself, mind what rules cannot do:
#
# - user is percent-encoded, as Kafka writes it (svc%3Ateam%20a). A client_id with a quote, a backslash, an asterisk, a question mark
#   or a line end stays as Java quotes it, in quotes and with backslashes; all others are as the client gave them.
# - A throttle time is NaN as long as there was none.
# - kafka_quota_controller_mutation_tokens of a client without a limit is 1e20.
# - Entities left over from earlier rules are there too, for an hour.
# - The sums of throttle times and of the controller's waits are not there, but their means and counts.
# - There is no label broker: the target tells it. Both this page and quotascope in one Prometheus count everything twice.
#
# To keep the rules that you have, put those below before them, and the object names into their list, if they have one.

startDelaySeconds: 0
lowercaseOutputName: false
lowercaseOutputLabelNames: false
"""


def jmx_exporter_rules() -> str:
    """The file: YAML with comments."""
    return "".join([_HEAD, *_object_names(), *_rules()])


def _object_names() -> Iterator[str]:
    patterns = dict.fromkeys(name.attribute.pattern for name in NAMES)
    yield "\n# Nothing else is read.\nincludeObjectNames: &beans\n"
    yield from (f'  - "{pattern}"\n' for pattern in patterns)
    yield "# The same key for agents before 0.20.\nwhitelistObjectNames: *beans\n"


def _rules() -> Iterator[str]:
    yield (
        "\n# The first rule that matches counts, and nothing without a rule is shown. The beans of clients are many: for them the\n"
        "# agent remembers which rule matched (cache): a few kilobytes of heap for each bean, in return for quicker scrapes.\nrules:\n"
    )
    for name in sorted(NAMES, key=lambda name: not _many(name)):
        text = yaml.safe_dump(
            [_rule(name)], sort_keys=False, width=10_000, allow_unicode=True
        )
        yield "".join(f"  {line}\n" for line in text.splitlines())


def _rule(name: Name) -> dict[str, object]:
    pattern, groups = pattern_of(name)
    labels = {**name.constants, **groups}
    if name.attribute.open:
        labels[TAGS] = "$1"
    counts = name.family.type is FamilyType.COUNTER
    return {
        "pattern": pattern,
        "name": name.family.name,
        "type": "COUNTER" if counts else "GAUGE",
        "help": name.family.help,
        **({"valueFactor": 1 / name.divisor} if name.divisor != 1 else {}),
        **({"labels": labels} if labels else {}),
        **({"cache": True} if _many(name) else {}),
    }


def _many(name: Name) -> bool:
    """Whether there is one for each client."""
    return name.attribute.open or "client_id" in name.properties
