"""The form that chooses which entities are shown; it works without a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.metrics import QuotaType
from quotascope.pages.markup import element

from ..diagnosis.selection import Show
from ..diagnosis.units import short_type
from .query import Query, parameters

_KEPT: Final = ("sort", "reverse", "size")
"""What stays as it is when something else is looked for."""
_SHOWN: Final = {
    Show.LIMITED: "under a limit",
    Show.NEAR: "close to it, or over",
    Show.THROTTLED: "throttled",
    Show.ALL: "all",
}


def selection_form(query: Query) -> Element:
    """Fields for all that can be chosen, as it is chosen now."""
    wanted = query.selection
    chosen_type = "" if wanted.quota_type is None else wanted.quota_type.label
    types = [("", "all"), *((each.label, short_type(each)) for each in QuotaType)]
    shows = ((show.value, text) for show, text in _SHOWN.items())
    return element(
        "form",
        *_kept(query),
        _labelled("User or client-id", _field("q", wanted.text, type="search")),
        _labelled("Quota", _choice("type", types, chosen_type)),
        _labelled("Show", _choice("show", shows, wanted.show.value)),
        _labelled("Node", _field("broker", wanted.broker, size="4")),
        element("button", "Filter", type="submit"),
        element("a", "Reset", href="?"),
        method="get",
        id="selection",
        role="search",
        aria_label="Entities",
    )


def _kept(query: Query) -> Iterator[Element]:
    said = dict(parameters(query))
    for key in _KEPT:
        yield element("input", type="hidden", name=key, value=said.get(key, ""))


def _labelled(text: str, field: Element) -> Element:
    return element("label", f"{text} ", field)


def _field(key: str, value: str, **attributes: str) -> Element:
    return element(
        "input",
        name=key,
        id=key,
        value=value,
        maxlength="200",
        autocomplete="off",
        **attributes,
    )


def _choice(key: str, options: Iterable[tuple[str, str]], chosen: str) -> Element:
    made = element("select", name=key, id=key)
    for value, text in options:
        option = element("option", text, value=value)
        if value == chosen:
            option.set("selected", "selected")
        made.append(option)
    return made
