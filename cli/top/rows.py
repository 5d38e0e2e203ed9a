"""Which entities `quotascope top` shows, and in which order."""

from __future__ import annotations

from quotascope.exporter import selection
from quotascope.exporter.selection import Selection, in_order, matching
from quotascope.exporter.snapshot import Usages
from quotascope.exporter.units import short_type
from quotascope.metrics import QuotaType

from .choices import Choices, Kind


def chosen(measured: Usages, choices: Choices) -> Usages:
    """All that are limited or throttled, of the chosen type and names, sorted as chosen."""
    wanted = Selection(
        order=selection.Order(choices.order.value),
        quota_type=_type_of(choices.kind),
        text=choices.text,
    )
    return in_order(matching(measured, wanted), wanted)


def _type_of(kind: Kind) -> QuotaType | None:
    """None for all."""
    types = (each for each in QuotaType if short_type(each) == kind.value)
    return next(types, None)
