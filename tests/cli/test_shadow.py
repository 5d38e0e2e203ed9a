"""What `quotascope shadow` shows and how it ends; tests/spark/pipeline/test_stream.py runs the stream on a topic, test_real_shadow_verify.py asks a real Prometheus."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.conftest import Run
from tests.cli.usages import rendered
from tests.exporter.examples import health, limits, snapshot, usage
from tests.integration.web import ask

from quotascope.cli.status_view import view
from quotascope.cli.top.choices import Choices
from quotascope.cli.top.screen import screen
from quotascope.exporter.api.client import observed
from quotascope.exporter.api.documents import encoded, snapshot_document
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.shadow import UnevaluatedReason
from quotascope.exporter.snapshot import Shadow, Snapshot
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import families
from quotascope.metrics.catalog.family import OVERFLOW
from quotascope.metrics.catalog.shadow_stream import STREAM_FAMILIES
from quotascope.pipeline.ingest import IngestReport
from quotascope.pipeline.replay.continued import Part
from quotascope.pipeline.runs import shadow as runs
from quotascope.pipeline.runs import verify
from quotascope.pipeline.runs.shadow import ShadowCounters, series_of
from quotascope.pipeline.runs.verify import Figures, NotVerified, Verification, Verified
from quotascope.spark_listener.exposition.collector import JobCollector
from quotascope.spark_listener.exposition.otlp import metrics_data

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
MARKUP = "<b>[/b]\x1b[2J\n" + "x" * 300
QUIET = Shadow(name="quiet", evaluated={(PRODUCE, "1"): 7}, throttled={(PRODUCE, "1"): 0})
BUSY = Shadow(
    name="half",
    entities=(usage(user="alice", limit=10.0, usage=20.0, throttle_time_seconds=11.0), usage(user=MARKUP, limit=10.0, usage=1.0)),
    evaluated={(PRODUCE, "1"): 1, (PRODUCE, "2"): 1},
    throttled={(PRODUCE, "1"): 1, (PRODUCE, "2"): 0},
    unevaluated={(FETCH, "1", UnevaluatedReason.FINER): 3}
)  # fmt: skip


def unknown(*reasons: UnevaluatedReason) -> Shadow:
    return Shadow(name="dark", unevaluated={(PRODUCE, "1", each): 2 for each in reasons})


@pytest.fixture
def status(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command on a snapshot that an exporter has sent."""

    def status(answer: Snapshot, *more: str) -> tuple[int, str, str]:
        async def observe(*_: object) -> Any:
            return observed(encoded(snapshot_document(answer)))

        monkeypatch.setattr("quotascope.cli.cluster.observe", observe)
        return run("shadow", "status", "--exporter", "http://x:9749", *more)

    return status


@pytest.mark.parametrize(
    ("shadows", "changes", "code"),
    [
        ((QUIET,), {}, 0),
        ((QUIET, BUSY), {}, 3),
        ((QUIET, unknown(UnevaluatedReason.CENSORED)), {}, 4),
        ((unknown(UnevaluatedReason.ABSENT), BUSY), {}, 3),
        ((Shadow(name="of nothing"),), {}, 4),
        ((QUIET,), {"sources": (health(up=False),)}, 4),
        ((QUIET,), {"sources": (health(up=False, stand_by_of="1"),)}, 0),
        ((), {}, 2),
    ],
)
def test_a_pipeline_learns_it_from_the_exit_code(
    status: Run, shadows: tuple[Shadow, ...], changes: dict[str, Any], code: int
) -> None:
    """Quiet is only what is known to be quiet, with all sources read."""
    assert status(snapshot(shadows=shadows, **changes))[0] == code


def test_entities_stand_beside_what_is_enforced(status: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are untrusted; JSON has the same."""
    monkeypatch.setenv("COLUMNS", "200")
    given = snapshot(usage(user="alice", limit=1000.0, usage=20.0), shadows=(BUSY,))
    _, text, _ = status(given)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "half produce 2 1 none" in lines
    assert "half fetch ? ? 3 finer" in lines
    assert "1 user alice produce 20.0 / 10.0 B/s 200% 11.0 s 1.00 kB/s 0 s" in lines
    assert "\x1b[2J" not in text
    _, text, _ = status(replace(given, shadows=(replace(BUSY, name="[/b]"),)))
    assert [" ".join(line.split()) for line in text.splitlines()][1].startswith("[/b] produce 2 1")
    document = json.loads(status(given, "--json")[1])["shadows"][0]
    assert document["entities"][1]["user"] == MARKUP
    assert document["unevaluated"] == [{"quota_type": "fetch", "broker": "1", "reason": "finer", "entities": 3}]


@pytest.mark.parametrize(
    ("rules", "advice"),
    [
        ({QuotaEntity("alice"): 1.0}, "quotascope quotas set --measure-only producer_byte_rate --default-user --default-client-id --apply"),
        ({QuotaEntity(DEFAULT): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(None, "app"): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(None, DEFAULT): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(DEFAULT, DEFAULT): 1.0, QuotaEntity("alice"): 1.0}, "would overrule limits that are set"),
    ]
)  # fmt: skip
def test_it_says_how_to_measure_without_a_limit(status: Run, rules: dict[QuotaEntity, float], advice: str) -> None:
    """Not where such a rule would leave clients of levels 6 to 8 unlimited, or where it is there already."""
    given = limits(rules={PRODUCE: QuotaRules(rules)})
    text = status(snapshot(shadows=(unknown(UnevaluatedReason.FINER),), limits=given))[1]
    assert f"producer_byte_rate: {'to measure' if 'quotascope' in advice else 'a rule'}" in text.replace("\n", " ")
    assert advice in " ".join(text.split())


def test_top_and_status_have_a_column_for_shadows() -> None:
    """The longest throttle in any of them, else the highest utilization; no column without shadows."""
    closest = tuple(usage(user=user, limit=10.0, usage=used) for user, used in (("alice", 9.0), ("bob", 4.5)))
    throttles = {"alice": 1.0, "bob": 0.0, "carol": 0.0}
    rows = [
        usage(user=user, limit=1000.0, usage=900.0, throttle_time_seconds=seconds)
        for user, seconds in throttles.items()
    ]
    shadows = (BUSY, replace(BUSY, name="near", entities=closest))
    for given in (snapshot(*rows, shadows=shadows), snapshot(*rows)):
        for drawn in (view(given, [], 10), screen(given, Trails(), Choices(), 160, 40)):
            text = rendered(drawn, 160)
            assert ("shadow" in text) is bool(given.shadows)
            if given.shadows:
                assert re.search(r"alice.*1.00 s +11.0 s", text)
                assert re.search(r"bob.*0 s +45%", text)
                assert re.search(r"carol.*0 s +- ", text)


HOSTILE = 'a\n"b"\\<b>'


def row(**more: Any) -> dict[str, Any]:
    """What a step decided of one client."""
    client = {"candidate": "half", "broker": "1", "user": "alice", "client_id": "app", "quota_type": "produce"}
    throttled = {"throttled_requests": 2, "throttled_ms": 1_500}
    return {**client, **throttled, "refused_requests": 0, "refused_mutations": 0, "step": 1, **more}


def collected(counters: ShadowCounters) -> list[Metric]:
    return [*JobCollector(counters.read, None, STREAM_FAMILIES, series_of).collect()]


def shown(counters: ShadowCounters) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in collected(counters)
        for sample in metric.samples
    }


def test_counters() -> None:
    """What was counted before is where they begin; each has the labels that the catalog declares."""
    counters = ShadowCounters([row()], late=3)
    counters.add([row(), row(quota_type="controller_mutation", user=HOSTILE, refused_mutations=7)], 1, 12_500)
    alice = "half", "produce", "1", "alice", "app"
    mutating = "half", "1", HOSTILE, "app"
    assert shown(counters) == {
        ("kafka_quota_shadow_throttled_requests_total", *alice): 4,
        ("kafka_quota_shadow_throttle_seconds_total", *alice): 3.0,
        ("kafka_quota_shadow_throttled_requests_total", "half", "controller_mutation", *mutating[1:]): 2,
        ("kafka_quota_shadow_throttle_seconds_total", "half", "controller_mutation", *mutating[1:]): 1.5,
        ("kafka_quota_shadow_refused_mutations_total", *mutating): 7,
        ("quotascope_shadow_late_requests_total",): 4,
        ("quotascope_shadow_decided_timestamp_seconds",): 12.5,
    }  # fmt: skip
    declared = {family.name: set(family.labels) for family in STREAM_FAMILIES}
    for metric in collected(counters):
        assert all(set(sample.labels) == declared[sample.name] for sample in metric.samples)


def test_the_exporter_does_not_declare_what_only_the_stream_shows() -> None:
    """Its families are documented as those of `serve`."""
    assert not {*STREAM_FAMILIES} & {*families()}


def test_pushed() -> None:
    """Over OTLP they have the values and labels of the page, and names that Prometheus translates back."""
    pushed = metrics_data(ShadowCounters([row()]).read(), Resource({}), (1, 2), None, STREAM_FAMILIES, series_of)
    scoped: Any = pushed.resource_metrics[0].scope_metrics[0]
    points = {
        metric.name: [(point.attributes, point.value) for point in metric.data.data_points] for metric in scoped.metrics
    }
    alice = {"shadow": "half", "quota_type": "produce", "broker": "1", "user": "alice", "client_id": "app"}
    assert points == {
        "kafka.quota.shadow_throttled_requests": [(alice, 2.0)],
        "kafka.quota.shadow_throttle": [(alice, 1.5)],
        "quotascope.shadow_late_requests": [({}, 0.0)],
    }


def test_a_cap_on_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entities beyond it are counted as one; those that have series keep them."""
    monkeypatch.setattr(runs, "MOST_ENTITIES", 1)
    steps = [[row(user="b")], [row(user="often", throttled_requests=9), row(user="a")]]
    counters = ShadowCounters([])
    for step in steps:
        counters.add(step)
    started_again = ShadowCounters(
        [row(user="often", throttled_requests=9, step=2), row(user="a", step=2), row(user="b")]
    )
    for each in (counters, started_again):
        counted = "kafka_quota_shadow_throttled_requests_total"
        requests = {key[4]: value for key, value in shown(each).items() if key[0] == counted}
        assert requests == {"b": 2, OVERFLOW: 11}


def test_stream(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Options go to the source and the steps; each batch is two lines of output, and the page has what was counted so far."""
    file = tmp_path / "c.yaml"
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1}]")
    asked, held, steps = list[Any](), list[Any](), list[bool]()

    def opened(_: str, __: Any, rules: Any, hold_ms: int) -> Any:
        held.append(([each.name for each in rules], hold_ms))
        counted = SimpleNamespace(to_pylist=lambda: [row()])
        return SimpleNamespace(counted=lambda: counted, late=0, step=step)

    def step(_: Any, *, all_of_it: bool) -> Part:
        steps.append(all_of_it)
        rows: Any = SimpleNamespace(to_pylist=lambda: [row()] if not all_of_it else [])
        return Part(decided=4, waiting=1, results=rows, until_ms=9_000)

    def start(*arguments: Any, done: Any, **keywords: Any) -> None:
        asked.append((*arguments, keywords))
        done(3, IngestReport(read=5, kept=5))
        (number,) = page.findall("".join(written))
        text = ask(number).text
        families = {each.name: each for each in text_string_to_metric_families(text)}
        (sample,) = families["kafka_quota_shadow_throttled_requests"].samples
        assert sample.value == 4

    page, written = re.compile(r"metrics: (\S+)"), list[str]()
    monkeypatch.setattr("typer.echo", lambda text, **_: written.append(f"{text}\n"))
    monkeypatch.setattr(runs, "ShadowStream", opened)
    monkeypatch.setattr("quotascope.pipeline.runs.engine.run_of", lambda *_: None)
    monkeypatch.setattr("quotascope.pipeline.runs.ingest.ingest_topic", start)
    usage = str(tmp_path / "usage")
    options = ["--topic", "kafka://b:1/t", "--candidates", str(file), "--into", usage]
    code, _, err = run("shadow", "stream", *options, "--hold", "2s", "--option", "a=b", "--port", "0")
    assert (code, err) == (0, "")
    assert written[1:] == [
        "batch 3: 5 lines: 5 requests added, 0 second lines of forwarded requests, 0 known before, 0 quarantined\n",
        "  shadows: 4 requests decided, 2 throttled, 0 late, 1 waiting\n",
        "  shadows: 4 requests decided, 0 throttled, 0 late, 1 waiting\n",
    ]
    assert steps == [False, True]
    ((source, into, checkpoint, _, keywords),) = asked
    assert source == {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "a": "b"}
    assert (into, checkpoint) == (usage, f"{usage}/stream-t")
    assert (held, keywords["every"]) == ([(["quotas"], 2_000)], "10000 milliseconds")


def test_a_topic_is_a_uri(run: Run) -> None:
    """The message names the option."""
    code, _, err = run("shadow", "stream", "--topic", "t", "--candidates", "c", "--into", "/u")
    assert code == 2
    assert "--topic" in err


SINCE = ("shadow", "verify", "half", "--folder", "/u", "--since", "2026-11-23T14:00:00Z")


@pytest.mark.parametrize(("seconds", "code"), [(100.0, 0), (105.0, 0), (150.0, 1), (0.0, 1)])
def test_verify(run: Run, monkeypatch: pytest.MonkeyPatch, seconds: float, code: int) -> None:
    """The exit code says whether the same entities are throttled for about as long; JSON has the figures, the table the names made harmless."""
    times = verify.times_of(1_763_906_400_000, 1_763_907_000_000, None)
    before = Figures(throttled=5, seconds=100.0, refused=0)
    after = Figures(throttled=5 if seconds else 0, seconds=seconds, refused=0)
    entity = Verified(user=HOSTILE, client_id="", predicted=before, happened=after)
    found = Verification(shadow="half", times=times, entities=(entity,))
    asked: list[Any] = []

    def answer(*given: Any) -> Verification:
        asked.append(given)
        return found

    monkeypatch.setattr(verify, "verify_log", answer)
    ended, out, _ = run(*SINCE, "--json")
    document = json.loads(out)
    assert (ended, document["agrees"]) == (code, code == 0)
    assert document["entities"][0]["happened"]["seconds"] == seconds
    assert asked == [("/u", "half", 1_795_442_400_000, None, None)]
    ended, out, _ = run(*SINCE, "--tolerance", "100")
    assert ended == (0 if seconds else 1)
    assert HOSTILE not in out
    assert "1 min 40 s →" in out


def test_no_history_to_verify(run: Run) -> None:
    """A folder that is not there is nothing to compare; the message has it, and what makes a history."""
    makes = "`quotascope ingest LOGS --into FOLDER` makes a history"
    assert run(*SINCE) == (2, "", f"quotascope: /u: there is no such folder; {makes}\n")


def test_nothing_to_verify(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is neither yes nor no; a time that is none and sources that are not one are mistakes."""

    def nothing(*_: object) -> Verification:
        raise NotVerified("no request")

    monkeypatch.setattr(verify, "verify_log", nothing)
    assert run(*SINCE) == (2, "", "quotascope: no request\n")
    for options in (("--since", "noon"), ("--prometheus", "http://p")):
        assert run(*SINCE, *options)[0] == 2
