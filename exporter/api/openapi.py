"""The API as OpenAPI 3.1 describes it, made of the types of its answers."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from ..exposition import own_version
from ..page.query import EntityQuery, EpisodeQuery, PartQuery
from ..page.rules import RuleQuery
from ..page.team_list import TeamQuery
from .documents import (
    ChangesDocument,
    EntitiesDocument,
    EpisodesDocument,
    ErrorDocument,
    ExplainDocument,
    HealthDocument,
    RulesDocument,
    RunbooksDocument,
    SnapshotDocument,
    TeamsDocument,
)

_PART: Final = PartQuery.described()
_ENTITY_PARAMETERS: Final = {name: EpisodeQuery.described()[name] for name in ("user", "client_id")}
ANSWERS: Final[dict[str, tuple[type, dict[str, dict[str, Any]]]]] = {
    "entities": (EntitiesDocument, EntityQuery.described()),
    "episodes": (EpisodesDocument, EpisodeQuery.described()),
    "rules": (RulesDocument, RuleQuery.described()),
    "teams": (TeamsDocument, TeamQuery.described()),
    "explain": (ExplainDocument, _ENTITY_PARAMETERS | _PART),
    "changes": (ChangesDocument, _PART),
    "runbooks": (RunbooksDocument, _PART),
    "health": (HealthDocument, {}),
    "snapshot": (SnapshotDocument, {}),
}
"""The type of the answer, and the parameters, by path."""
_MODE: Final = "serialization"


@cache
def openapi() -> dict[str, Any]:
    """Return the document."""
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
