"""The API as OpenAPI 3.1 describes it, made of the types of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from quotascope.metrics import QuotaType

from ..diagnosis.selection import Order, Show
from ..exposition import own_version
from ..page.query import FARTHEST, MOST, SIZE
from ..page.rules import RuleShow
from .documents import (
    EntitiesDocument,
    EpisodesDocument,
    ErrorDocument,
    ExplainDocument,
    HealthDocument,
    RulesDocument,
    RunbooksDocument,
    SnapshotDocument,
)

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_PART: Final[dict[str, Any]] = {
    "offset": {"type": "integer", "minimum": 0, "maximum": FARTHEST, "default": 0},
    "size": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SIZE},
}
_TYPE: Final[dict[str, Any]] = {"enum": [kind.label for kind in QuotaType]}


def _one_of(values: Sequence[str], usual: str) -> dict[str, Any]:
    return {"enum": [str(value) for value in values], "default": str(usual)}


ANSWERS: Final[dict[str, tuple[type, dict[str, Any]]]] = {
    "entities": (
        EntitiesDocument,
        {
            "sort": _one_of([*Order], Order.URGENCY),
            "reverse": {"enum": ["0", "1", "false", "true"], "default": "0"},
            "show": _one_of([*Show], Show.LIMITED),
            "type": _TYPE,
            "q": _TEXT,
            "broker": _TEXT,
            "owner": _TEXT,
            **_PART,
        },
    ),
    "episodes": (
        EpisodesDocument,
        {
            "user": _TEXT,
            "client_id": _TEXT,
            "type": _TYPE,
            "since": {"type": "number", "minimum": 0, "default": 0},
            **_PART,
        },
    ),
    "rules": (
        RulesDocument,
        {
            "show": _one_of([*RuleShow], RuleShow.ALL),
            "type": _TYPE,
            "q": _TEXT,
            **_PART,
        },
    ),
    "explain": (ExplainDocument, {"user": _TEXT, "client_id": _TEXT, **_PART}),
    "runbooks": (RunbooksDocument, dict(_PART)),
    "health": (HealthDocument, {}),
    "snapshot": (SnapshotDocument, {}),
}
"""By path: the type of the answer, and the parameters."""
_MODE: Final = "serialization"


@cache
def openapi() -> dict[str, Any]:
    """The document."""
    kinds = [ErrorDocument, *(kind for kind, _ in ANSWERS.values())]
    references, definitions = TypeAdapter.json_schemas(
        [(kind, _MODE, TypeAdapter[Any](kind)) for kind in kinds], ref_template="#/components/schemas/{model}"
    )

    def answer(kind: type, description: str) -> dict[str, Any]:
        schema = references[kind, _MODE]
        return {
            "description": description,
            "content": {"application/json": {"schema": schema}},
        }

    return {
        "openapi": "3.1.0",
        "info": {"title": "quotascope", "version": own_version()},
        "paths": {
            f"/api/v1/{name}": {
                "get": {
                    "operationId": name,
                    "summary": (kind.__doc__ or "").strip(),
                    "parameters": [
                        {"name": parameter, "in": "query", "schema": schema} for parameter, schema in parameters.items()
                    ],
                    "responses": {
                        "200": answer(kind, "the answer"),
                        "400": answer(ErrorDocument, "a parameter that is not valid"),
                        "503": answer(ErrorDocument, "before the first collection"),
                    },
                }
            }
            for name, (kind, parameters) in ANSWERS.items()
        },
        "components": {"schemas": definitions["$defs"]},
    }
