"""The answer of an exporter, as `quotascope top --exporter` reads it."""

from collections.abc import Iterator
from dataclasses import replace

from tests.exporter.recorded import COMBINED_RULES, SPLIT_RULES, joined, limits
from tests.fuzz.target import Target

from quotascope.exporter.api.answers import snapshot_document
from quotascope.exporter.api.client import observed
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.errors import SourceError

_ENTITIES_OF_A_SEED = 3


def _read(data: bytes) -> None:
    repr(observed(data))


def _seeds() -> Iterator[bytes]:
    for name, rules in (
        ("combined/throttled.jolokia2.json", COMBINED_RULES),
        ("split/throttled.1.jolokia2.json", SPLIT_RULES),
    ):
        whole = snapshot_document(joined([name], limits(rules)))
        for start in range(0, len(whole.entities), _ENTITIES_OF_A_SEED):
            part = slice(start, start + _ENTITIES_OF_A_SEED)
            few = replace(whole, entities=whole.entities[part], rules=whole.rules[part])
            yield encoded(few)


TARGET = Target(
    name="api_snapshot",
    read=_read,
    refuses=(SourceError,),
    seeds=_seeds,
    words=(
        b'"quota_type": "produce"', b'"level": "user"', b'"broker": ""', b'"user": "',
        b'"limit_state": "unlimited"', b'"rule": null', b"NaN", b"1e999", b"-1", b'"\\ud800"',
    )
)  # fmt: skip
