"""Cases in one world: what fires, beside all that must not, in other clusters and of other clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.alerts.promtool import ALERTS, Case, Labels

from quotascope.alerts.rule import AlertScope

Move = Callable[[Labels], Labels]


def crowds(cases: Sequence[Case]) -> Iterator[Case]:
    """
    Each case that fires, amid all that never do.

    A join that forgot a label would take what belongs to a neighbor. A case is moved to another
    cluster, to other users and to other client-ids of the same user, as far as its ``alone`` does not
    name these: it may be silent only where nothing else is, or at another time.
    """
    silent = [case for case in cases if not case.fires]
    for one in cases:
        if one.fires and "alone" not in one.content:
            every = one.content.get("every")
            others = [each for each in silent if each.content.get("every") == every]
            yield _crowd(one, others)


def _crowd(one: Case, others: Sequence[Case]) -> Case:
    series = dict(one.content["series"])
    for number, other in enumerate(others):
        alone = other.content.get("alone", [])
        for what, move in _moves(one, other, number).items():
            if what not in alone:
                series |= _moved(other, move)
    together: dict[str, Any] = {
        "case": f"{one.content['case']} In a crowd.",
        "series": series,
    }
    return Case(subject=one.subject, content=one.content | together)


def _moves(one: Case, other: Case, number: int) -> dict[str, Move]:
    moves = {"cluster": _to_cluster(f"elsewhere {number}")}
    of_clients = all(map(_is_about_a_client, (*one.labels, *other.labels)))
    if ALERTS[one.subject].scope is AlertScope.ENTITY and of_clients:
        moves["user"] = _to_users(f"another {number}")
        user = one.labels[0]["user"]
        if user:
            moves["client_id"] = _to_clients_of(user, f"another {number}")
    return moves


def _is_about_a_client(labels: Labels) -> bool:
    return labels.get("user", "__overflow__") != "__overflow__"


def _to_cluster(name: str) -> Move:
    return lambda labels: {**labels, "cluster": f"{name} {labels.get('cluster', '')}"}


def _to_users(name: str) -> Move:
    return lambda labels: {**labels, "user": f"{name} {labels['user']}"}


def _to_clients_of(user: str, name: str) -> Move:
    def move(labels: Labels) -> Labels:
        own = f"{name} {labels['user']} {labels['client_id']}"
        return {**labels, "user": user, "client_id": own}

    return move


def _moved(case: Case, move: Move) -> dict[str, str]:
    return {
        _written(series, move(labels)): values
        for (series, values), labels in zip(case.content["series"].items(), case.labels, strict=True)
    }


def _written(series: str, labels: Labels) -> str:
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{series.partition('{')[0]}{{{inner}}}"
