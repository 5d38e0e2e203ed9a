"""The samples of an exporter's page by family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ..errors import SourceUnreadable
from ..sources.prometheus_text import numbers_in, page_of, parse_series, text_of
from ..untrusted import shown

_OURS = ("kafka_quota_", "quotascope_")


@dataclass(frozen=True, slots=True)
class Sample:
    """One series and its value."""

    labels: Mapping[str, str]
    value: float


class Page:
    """
    What an exporter shows.

    Raises ``SourceUnreadable`` when it is no page of quotascope.

    Args:
        answer: the text format of Prometheus, as ``/metrics`` gives it.

    """

    def __init__(self, answer: bytes) -> None:
        self._samples: dict[str, list[Sample]] = {}
        keys, numbers = numbers_in(page_of(answer), _OURS)
        for key, number in zip(keys, numbers, strict=True):
            name, labels = _parsed(text_of(key))
            self._samples.setdefault(name, []).append(Sample(labels, number))
        if catalog.BUILD_INFO.name not in self._samples:
            raise SourceUnreadable(
                "this is no page of quotascope: give the address of `quotascope serve`, such as http://quotascope:9749"
            )

    def samples(self, family: Family) -> list[Sample]:
        """All series of a family."""
        return self._samples.get(family.name, [])


def _parsed(key: str) -> tuple[str, dict[str, str]]:
    try:
        return parse_series(key)
    except ValueError as error:
        raise SourceUnreadable(
            f"the answer is not Prometheus text: {error} ({shown(key)})"
        ) from None
