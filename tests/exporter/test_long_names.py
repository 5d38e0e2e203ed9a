"""
Clients with names of 32 kB, from an agent's answer to all that comes out.

Bounded in bytes, and each of them still told from the others.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from tests.builders.agents import MISSING, Beans, answered_by, client, item, jolokia, node, text_of
from tests.exporter.examples import exporter_of, limits, snapshot, team, usage
from tests.exporter.sources.http.hostile import body
from tests.exporter.sources.http.misbehaving import serving
from tests.strategies import texts
from yarl import URL

from quotascope.clients.quota_admin import ConfiguredQuota
from quotascope.exporter import names
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig, Config
from quotascope.exporter.diagnosis.explain import explain
from quotascope.exporter.diagnosis.findings import diagnose
from quotascope.exporter.diagnosis.selection import Selection, Show, matching
from quotascope.exporter.discovery.build import build_sources
from quotascope.exporter.limits.admin import rules_of
from quotascope.exporter.names import LONGEST_BYTES, asked_as, contains, is_cut, known_as, known_rules
from quotascope.exporter.page.filling import filled
from quotascope.exporter.page.teams import Teams
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.sources.shortening import LongLines
from quotascope.metrics.catalog.teams import UNDECIDED
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.metrics.kafka.sanitizer import sanitize

LONG_BYTES = 32_767
Quoted = Callable[[str], str]


def long_names(number: int, length: int = LONG_BYTES) -> list[str]:
    """Return long names that differ only at their ends."""
    return [f"{'x' * (length - 8)}{place:08}" for place in range(number)]


def as_jolokia(clients: Iterable[str], user: str = "alice") -> bytes:
    """Return the answer of Jolokia about a node with these client ids of a user."""
    beans = node()
    for name in clients:
        beans |= client("Produce", user, name, byte_rate=1.0, throttle_time=0.0)
        beans |= client("Request", user, name, request_time=1.0, throttle_time=0.0)
    return jolokia(beans)


@asynccontextmanager
async def exported(
    answer: bytes, dialect: str, *headers: bytes, **source: object
) -> AsyncIterator[tuple[Snapshot, aiohttp.ClientSession]]:
    """The exporter beside a node that gives this answer."""
    async with serving(body(answer, *headers)) as url:
        document = {
            "server": {"address": "127.0.0.1", "port": 0},
            "collection": {"timeout_seconds": 120},  # of a busy machine
            "sources": [{"url": url, "dialect": dialect, "node_id": 1, "timeout_seconds": 60, **source}],
        }
        config = Config.model_validate(document)
        async with (
            exporter_of(config, build_sources(config.agents)) as exporter,
            aiohttp.ClientSession(exporter.url) as session,
        ):
            yield await exporter.snapshot(), session


async def read(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(URL(path, encoded=True)) as response:
        assert response.status == 200
        return await response.text()


@pytest.mark.parametrize(("dialect", "answer_of"), [("jolokia", as_jolokia), ("auto", text_of)])
async def test_long_client_ids_make_no_answer_long(dialect: str, answer_of: Callable[[Iterable[str]], bytes]) -> None:
    """
    Each of 300 clients with names of 32 kB is shown in 256 bytes, and found by its real name.

    Its name is the same in page and API; the metrics would have 49 MB.
    """
    asked_for = f"{'y' * 5_000}z"
    clients = [*long_names(300), asked_for]
    async with exported(answer_of([*clients, "app"]), dialect) as (taken, session):
        names = {entity.entity.client_id for entity in taken.measured}
        assert names == {known_as(name) for name in clients} | {"app"}
        assert max(len(name.encode()) for name in names) == LONGEST_BYTES
        for path in ("/metrics", "/?show=all&size=500", "/api/v1/entities?show=all&size=500", "/api/v1/snapshot"):
            assert len(await read(session, path)) < 4_000_000
        assert known_as(asked_for) in await read(session, "/metrics")
        for asked_name in (asked_for, known_as(asked_for)):
            explanation = json.loads(
                await read(session, f"/api/v1/explain?user=alice&client_id={sanitize(asked_name)}")
            )
            assert {entity["client_id"] for entity in explanation["entities"]} == {known_as(asked_for)}
            assert known_as(asked_for)[-32:] in await read(
                session, f"/entity?user=alice&client_id={sanitize(asked_name)}"
            )


async def test_an_agent_that_answers_too_much_text_loses_lines_and_says_so() -> None:
    """Lines with the longest names go first; all others are read, and nothing is called absent."""
    answer = text_of([*(f"app{number}" for number in range(50)), *long_names(100)])
    async with exported(answer, "auto", max_answer_bytes=1 << 20) as (taken, session):
        names = {entity.entity.client_id for entity in taken.measured}
        assert {f"app{number}" for number in range(50)} <= names
        (node,) = taken.nodes
        assert node.coverage is not None
        assert node.coverage.unplaced is not None
        lost = node.coverage.unplaced
        values_left = sum(
            (usage.usage is not None) + (usage.throttle_time_seconds is not None) for usage in taken.measured
        )
        assert lost.count == 300 - values_left
        assert "left out, because the answer is longer than 1 MiB (max_answer_bytes)" in lost.text
        assert "kafka_server_Produce_byte_rate" in lost.text
        metrics = await read(session, "/metrics")
        assert (
            f'quotascope_source_unplaced_series{{source="127.0.0.1:{taken.sources[0].name.rpartition(":")[2]}"}} '
            f"{lost.count}.0" in metrics
        )
        assert "left out" in await read(session, "/api/v1/health")


async def test_long_names_of_beans_do_not_make_an_answer_too_long() -> None:
    """Long names in an answer of Jolokia are shortened while it is read, and no entity is lost."""
    clients = [*long_names(100), "app"]
    async with exported(as_jolokia(clients), "jolokia", max_answer_bytes=1 << 20) as (taken, _):
        assert taken.sources[0].error is None
        assert {entity.entity.client_id for entity in taken.measured} == set(map(known_as, clients))
        (node,) = taken.nodes
        assert node.coverage is not None
        assert node.coverage.unplaced is None


@pytest.mark.parametrize(("dialect", "of_clients"), [("jolokia", as_jolokia), ("auto", text_of)])
async def test_names_are_made_short_in_an_answer_that_comes_compressed(
    dialect: str, of_clients: Callable[[Iterable[str]], bytes]
) -> None:
    """Long names are shortened while an answer is unpacked, piece by piece, as each piece may exceed the maximum."""
    clients = [f"app{number}" for number in range(50)]
    packed = gzip.compress(of_clients([*clients, *long_names(100)]))
    headers = (b"Content-Encoding: gzip",)
    async with exported(packed, dialect, *headers, max_answer_bytes=1 << 20) as (taken, _):
        assert taken.sources[0].error is None
        assert set(clients) <= {entity.entity.client_id for entity in taken.measured}


async def test_an_answer_that_stays_too_long_is_asked_for_in_parts() -> None:
    """An answer that stays too long is requested by quota type; a type with too many clients is lost with a reason."""

    async def answer(request: web.Request) -> web.Response:
        values: list[object] = []
        for read_request in json.loads(await request.read()):
            pattern, beans = read_request["mbean"], Beans()
            if pattern in {"kafka.server:*", "kafka.server:type=app-info,*"}:
                beans |= node()
            if pattern in {"kafka.server:*", "kafka.server:type=Fetch,*"}:
                beans |= client("Fetch", "alice", "app", byte_rate=2.0, throttle_time=0.0)
            if pattern in {"kafka.server:*", "kafka.server:type=Produce,*"}:
                for number in range(20_000):
                    beans |= client("Produce", "alice", f"{number}", byte_rate=1.0, throttle_time=0.0)
            values.append(item(beans) if pattern.endswith("*") else MISSING)
        return web.json_response(values)

    async with answered_by(answer, "/jolokia/") as server:
        url = str(server.make_url("/jolokia"))
        (source,) = build_sources(
            Config.model_validate({"sources": [{"url": url, "dialect": "jolokia", "max_answer_bytes": 1 << 20}]}).agents
        )
        for _ in range(2):
            table = await source.read()
            assert {column.bean.get("type") for column in table.layout.columns} == {"app-info", "Fetch"}
            assert table.coverage.unplaced is not None
            assert "kafka.server:type=Produce,* left out" in table.coverage.unplaced.text
        await source.close()


def test_what_a_long_name_is_known_as() -> None:
    """
    Names that differ only at their ends stay two.

    A name that looks like a cut one is cut itself, so that it cannot stand for another.
    """
    name, other_name = long_names(2)
    assert known_as("app") == "app"
    assert known_as("é" * 128) == "é" * 128
    assert known_as(name) != known_as(other_name)
    assert is_cut(known_as(name))
    assert known_as(known_as(name)) != known_as(name)
    assert is_cut(known_as(known_as(name)))
    assert asked_as(name) == asked_as(known_as(name)) == known_as(name)


@given(texts)
def test_what_is_known_of_a_name_is_bounded(name: str) -> None:
    """Memory of names is bounded whatever they hold, and a name is found by its beginning."""
    for known_name in (known_as(name), known_as(name * 1_000)):
        assert len(known_name.encode(errors="replace")) <= LONGEST_BYTES
    assert contains(known_as(name), name.casefold()) or is_cut(known_as(name))


def test_a_search_longer_than_what_is_shown_finds_the_name() -> None:
    """A search finds a name by its known beginning, and no name that was not cut."""
    (name,) = long_names(1)
    state = snapshot(usage(client_id=known_as(name)), usage(client_id="x" * 200), usage(client_id="other"))
    for text, count in ((name[:400], 1), (name[:150], 2), ("other", 1), (f"y{name[:400]}", 0)):
        assert len(matching(state.measured, Selection(near_limit=0.9, show=Show.ALL, text=text))) == count


def test_rules_of_long_names_decide() -> None:
    """The rule of a name of 32 kB applies to that client, and no command has a name that Kafka does not know."""
    name, other_name = long_names(2)
    rules = rules_of([ConfiguredQuota(entity={"client-id": name}, key="producer_byte_rate", value=7.0)])
    (entity,) = rules[QuotaType.PRODUCE]
    assert entity == QuotaEntity(None, known_as(name))
    in_force = limits(rules=rules)
    produce = {
        client_id: next(iter(explain(in_force, "bob", client_id))).decision.bound
        for client_id in (name, known_as(name), other_name)
    }
    assert produce == {name: 7.0, known_as(name): 7.0, other_name: None}
    tables = {QuotaType.FETCH: QuotaRules({QuotaEntity(name): 1.0, QuotaEntity("a"): 2.0})}
    assert dict(known_rules(tables)[QuotaType.FETCH]) == {QuotaEntity(known_as(name)): 1.0, QuotaEntity("a"): 2.0}
    runbook = "```sh\nquotascope quotas set --client-id app1 --fetch 1\n```"
    assert known_as(name) not in filled(runbook, None, known_as(name), in_force)


@pytest.mark.parametrize("max_bytes", [1_024, 2_000, 50_000])
def test_names_are_bounded_in_bytes(max_bytes: int) -> None:
    """Entities with the longest names become overflow; ordinary ones stay, sums are right, and the choice is stable."""
    ordinary = [usage(client_id=f"app{number}", usage=1.0) for number in range(20)]
    long = [usage(client_id=known_as(name), usage=1.0) for name in long_names(10)]
    taken = snapshot(*ordinary, *long)
    bounded = Cardinality(CardinalityConfig(max_name_bytes=max_bytes))
    first_result, second = bounded.apply(taken), bounded.apply(taken)
    names = [
        entity_usage.entity.client_id for entity_usage in first_result.entities if not entity_usage.entity.stands_in
    ]
    assert sum(len(name.encode()) + len("alice") for name in names) <= max_bytes
    assert {entity_usage.entity.client_id for entity_usage in ordinary} <= set(names)
    assert [entity_usage.entity for entity_usage in second.entities] == [
        entity_usage.entity for entity_usage in first_result.entities
    ]
    assert sum(entity_usage.usage or 0.0 for entity_usage in first_result.entities) == 30.0
    folded = 30 - len(names)
    assert first_result.folds.overflow == folded
    assert first_result.folds.long == ({QuotaType.PRODUCE: folded} if folded else {})


PATTERNS: dict[str, dict[str, list[str]]] = {
    "include": {"include_client_ids": ["x+0000000[0-3]"]},
    "exclude": {"exclude_client_ids": [".*0000000[4-9]"]},
    "both": {"include_client_ids": ["x.*"], "exclude_client_ids": [".*[4-9]"]},
}


@pytest.mark.parametrize("excluded", ["overflow", "drop"])
@pytest.mark.parametrize("patterns", PATTERNS.values(), ids=PATTERNS)
def test_patterns_match_the_name_that_a_client_has(patterns: dict[str, list[str]], excluded: str) -> None:
    """Patterns match a client's real name, and not the shortened one, which ends with a digest."""
    clients = long_names(10)
    taken = snapshot(*(usage(client_id=known_as(name), usage=1.0) for name in clients))
    config = CardinalityConfig.model_validate({**patterns, "excluded": excluded})
    kept = Cardinality(config).apply(taken)
    shown = {entity.entity.client_id for entity in kept.entities if not entity.entity.stands_in}
    assert shown == set(map(known_as, clients[:4]))
    assert (kept.folds.excluded, kept.folds.unmatched) == (6, 0)
    assert sum(entity.usage or 0.0 for entity in kept.entities) == (10.0 if excluded == "overflow" else 4.0)


@pytest.mark.parametrize("excluded", ["overflow", "drop"])
def test_a_long_name_that_is_not_remembered_is_not_matched(monkeypatch: pytest.MonkeyPatch, excluded: str) -> None:
    """A long name that is not remembered counts as overflow, never as left out or let through. A finding says so."""
    monkeypatch.setattr(names, "MOST_REMEMBERED_BYTES", 3 * LONG_BYTES)
    clients = [*long_names(10), "app"]
    taken = snapshot(*(usage(client_id=known_as(name), usage=1.0) for name in clients))
    config = CardinalityConfig.model_validate({"exclude_client_ids": ["secret.*", ".*7"], "excluded": excluded})
    kept = Cardinality(config).apply(taken)
    shown = {entity.entity.client_id for entity in kept.entities if not entity.entity.stands_in}
    assert shown == {"app", *map(known_as, (clients[8], clients[9]))}
    assert (kept.folds.excluded, kept.folds.unmatched) == (8, 7)
    assert sum(entity.usage or 0.0 for entity in kept.entities) == (11.0 if excluded == "overflow" else 10.0)
    assert "7 names of more than 256 bytes" in " ".join(finding.text for finding in diagnose(kept))
    assert Cardinality(CardinalityConfig()).apply(taken).folds.unmatched == 0


def test_teams_by_patterns_of_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The first entry that matches the whole name decides the team.

    Where that is unknown, the team is unknown, not the next one.
    """
    clients = long_names(10)
    teams = Teams(
        [
            team("exact", client_id=asked_as(clients[0])),
            team("other", user="bob"),
            team("pay", client_id_pattern=".*0000000[0-5]"),
            team("rest", client_id_pattern=".*"),
        ],
    )
    monkeypatch.setattr(names, "MOST_REMEMBERED_BYTES", 2 * LONG_BYTES)
    entities = [usage(client_id=known_as(name)).entity for name in clients]
    assert [teams.of(entity) for entity in entities[-2:]] == ["rest", "rest"]
    assert teams.of(entities[5]) == UNDECIDED
    known_as(clients[5])
    assert teams.of(entities[5]) == "pay"
    assert teams.of(entities[0]) == "exact"
    assert teams.of(usage(client_id=clients[3][:100]).entity) == "rest"
    assert teams.of(usage(user="bob", client_id=known_as(clients[2])).entity) == "other"


def test_lines_that_do_not_fit_are_counted_by_name() -> None:
    """Lines that do not fit are counted: comments and long lines first, then the last ones; an incomplete one stays."""
    lines = LongLines(10_000)
    page = bytearray(b"# HELP a b\n" + b'a{b="%s"} 1\n' % (b"x" * 9_000) + b"c 1\n" * 10 + b"half")
    lines.shorten(page)
    assert page == b"c 1\n" * 10 + b"half"
    page += b"\n" + b"d 1\n" * 4_000 + b"e 1\n" * 3 + b"half"
    lines.shorten(page)
    assert 7_400 < len(page) <= 7_500
    assert page.startswith(b"c 1\n" * 10 + b"half\nd 1\n")
    assert page.endswith(b"d 1\n")
    assert lines.enough
    lost = lines.lost()
    assert lost is not None
    assert lost.count == 1 + 4_000 - (len(page) - 45) // 4 + 3
    assert "of d, 1 of a, and all that follows" in lost.text
    assert LongLines(10).lost() is None
