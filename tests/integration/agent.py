"""Names and numbers of a node's Jolokia, read directly, to compare the exporter with."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from . import web

Key = tuple[str, str, str, str]
"""Quota type as Kafka's group, user, client id, attribute."""

_PROPERTY = re.compile(r'([\w-]+)=("(?:[^"\\]|\\.)*"|[^,]*)')
_GROUPS = ("Produce", "Fetch", "Request", "ControllerMutation")


def quota_numbers(url: str) -> dict[Key, float | None]:
    """Return every attribute of the quota beans; None where the node says NaN."""
    return numbers_of(ask(url, [_read(f"kafka.server:type={group},*") for group in _GROUPS]))


def numbers_of(items: Sequence[dict[str, Any]]) -> dict[Key, float | None]:
    """Return every attribute of quota beans in the answers to a bulk request, of which others may be about more."""
    return {
        key: value
        for item in items
        for name, attributes in item.get("value", {}).items()
        if ":type=" in name or ",type=" in name
        for key, value in _numbers(name, attributes)
        if key[0] in _GROUPS
    }


def leads(url: str) -> bool:
    """Return whether the node says that it is the active controller."""
    bean = "kafka.controller:type=KafkaController,name=ActiveControllerCount"
    (item,) = ask(url, [_read(bean)])
    return bool(item["value"]["Value"] == 1)


def ask(url: str, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers to one bulk request."""
    items: list[dict[str, Any]] = json.loads(web.ask(url, json.dumps(requests).encode()).body)
    return items


def _read(bean: str) -> dict[str, Any]:
    return {"type": "read", "mbean": bean}


def _numbers(name: str, attributes: dict[str, float | None]) -> Iterator[tuple[Key, float | None]]:
    properties = {key: _unquoted(value) for key, value in _PROPERTY.findall(name.partition(":")[2])}
    user = unquote(properties.get("user", ""))
    client_id = properties.get("client-id", "")
    for attribute, value in attributes.items():
        yield (properties["type"], user, client_id, attribute), value


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value[1:-1])
