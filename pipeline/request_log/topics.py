"""
What CreateTopics, CreatePartitions and DeleteTopics name, as the line says it.

CreateTopics tells its partitions, or leaves them to the broker's default, which only answers since version 5 tell; CreatePartitions
tells the new total, DeleteTopics nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
TopicRow: TypeAlias = dict[str, Any]

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def _row(
    name: str | None, answer: Json, partitions: int | None, request: Json
) -> TopicRow:
    topic_id = answer.get("topicId")
    return {
        "name": name,
        "id": None if topic_id == _NO_ID else topic_id,
        "partitions": partitions,
        "error": answer.get("errorCode"),
        "validate_only": bool(request.get("validateOnly", False)),
    }


def _answers(response: Json, field: str) -> dict[str, Json]:
    """Answers by topic; none when the client did not wait for one."""
    return {answer["name"]: answer for answer in response[field]} if response else {}


def _created(request: Json, response: Json) -> list[TopicRow]:
    answers = _answers(response, "topics")
    rows = []
    for topic in request["topics"]:
        answer = answers.get(topic["name"], {})
        asked = len(topic["assignments"]) or topic["numPartitions"]
        told = asked if asked > 0 else answer.get("numPartitions", -1)
        rows.append(_row(topic["name"], answer, told if told > 0 else None, request))
    return rows


def _enlarged(request: Json, response: Json) -> list[TopicRow]:
    answers = _answers(response, "results")
    return [
        _row(topic["name"], answers.get(topic["name"], {}), topic["count"], request)
        for topic in request["topics"]
    ]


def _deleted(request: Json, response: Json) -> list[TopicRow]:
    """The answer knows the name of a topic that was given by its id (since version 6)."""
    if response:
        return [
            _row(answer["name"], answer, None, request)
            for answer in response["responses"]
        ]
    named = request.get("topics") or [
        {"name": name} for name in request.get("topicNames", ())
    ]
    return [
        _row(topic["name"], {"topicId": topic.get("topicId")}, None, request)
        for topic in named
    ]


TOPICS_OF: Final[Mapping[int, Callable[[Json, Json], list[TopicRow]]]] = {
    CREATE_TOPICS: _created,
    DELETE_TOPICS: _deleted,
    CREATE_PARTITIONS: _enlarged,
}
"""Reads `request` and `response` of a line by API key."""
