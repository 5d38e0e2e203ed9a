"""Output and exit codes of `quotascope shadow`; tests/spark has a stream on a real topic."""

from __future__ import annotations

import csv
import io
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
from rich.console import Group
from tests.cli.conftest import Run
from tests.cli.usages import rendered, reported
from tests.exporter.examples import changes, health, in_shadow, limits, snapshot, usage
from tests.integration.web import ask

from quotascope.cli.shadow_view import counts, nearest
from quotascope.cli.status_view import view
from quotascope.cli.top.choices import Choices
from quotascope.cli.top.screen import screen
from quotascope.exporter.api.answers import snapshot_document
from quotascope.exporter.api.client import observed
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.shadow import UnevaluatedReason
from quotascope.exporter.snapshot import Shadow, Snapshot
from quotascope.metrics.catalog import families
from quotascope.metrics.catalog.family import OVERFLOW
from quotascope.metrics.catalog.shadow_stream import STREAM_FAMILIES
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pages.baseline import ThrottleChange
from quotascope.pipeline.engine import Local
from quotascope.pipeline.ingest import IngestReport
from quotascope.pipeline.releases import Followed
from quotascope.pipeline.replay.continued import Part
from quotascope.pipeline.runs import shadow as runs
from quotascope.pipeline.runs import verify
from quotascope.pipeline.runs.shadow import ShadowCounters, series_of
from quotascope.pipeline.runs.verify import Figures, NotVerified, Verification, Verified
from quotascope.spark_listener.exposition.collector import JobCollector
from quotascope.spark_listener.exposition.otlp import metrics_data

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
MARKUP = "<b>[/b]\x1b[2J\n" + "x" * 300
QUIET = Shadow(name="quiet", evaluated={(PRODUCE, "1"): 7}, changes={(PRODUCE, "1"): changes()})
LOOSER = Shadow(
    name="looser",
    entities=(
        in_shadow(
            usage(user="alice", limit=50.0, usage=20.0, throttle_time_seconds=None),
            ThrottleChange.SHORTER,
            held_back=True,
        ),
    ),
    evaluated={(PRODUCE, "1"): 3},
    changes={(PRODUCE, "1"): changes(shorter=1, ended=1, unchanged=1)}
)  # fmt: skip
BUSY = Shadow(
    name="half",
    entities=(
        in_shadow(usage(user="alice", limit=10.0, usage=20.0, throttle_time_seconds=11.0), ThrottleChange.NEW),
        in_shadow(usage(user=MARKUP, limit=10.0, usage=1.0)),
    ),
    evaluated={(PRODUCE, "1"): 1, (PRODUCE, "2"): 1},
    changes={(PRODUCE, "1"): changes(new=1), (PRODUCE, "2"): changes()},
    unevaluated={(FETCH, "1", UnevaluatedReason.FINER): 3}
)  # fmt: skip


def unknown(*reasons: UnevaluatedReason) -> Shadow:
    return Shadow(name="dark", unevaluated={(PRODUCE, "1", reason): 2 for reason in reasons})


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
        ((LOOSER,), {}, 0),
        ((replace(LOOSER, changes={(PRODUCE, "1"): changes(longer=1)}),), {}, 3),
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
    """The exit code is 0 only if all sources were read and no client is known to be throttled."""
    assert status(snapshot(shadows=shadows, **changes))[0] == code


def test_entities_stand_beside_what_is_enforced(status: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entities are shown with the enforced and the shadow's state; hostile names are safe, and JSON has the same."""
    monkeypatch.setenv("COLUMNS", "200")
    snapshot_now = snapshot(usage(user="alice", limit=1000.0, usage=20.0), shadows=(BUSY,))
    _, text, _ = status(snapshot_now)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "half produce 2 1 0 0 0 0 none" in lines
    assert "half fetch ? ? ? ? ? ? 3 finer" in lines
    assert "1 user alice produce 20.0 / 10.0 B/s 200% 11.0 s newly throttled 1.00 kB/s 0 s" in lines
    assert "\x1b[2J" not in text
    _, text, _ = status(replace(snapshot_now, shadows=(replace(BUSY, name="[/b]"),)))
    assert [" ".join(line.split()) for line in text.splitlines()][2].startswith("[/b] produce 2 1")
    document = json.loads(status(snapshot_now, "--json")[1])["shadows"][0]
    assert document["entities"][1]["user"] == MARKUP
    assert document["unevaluated"] == [{"quota_type": "fetch", "broker": "1", "reason": "finer", "entities": 3}]


def test_a_client_that_is_held_back_has_a_bound(status: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Utilization and throttle time of a held-back client are bounds, as a raised limit may throttle it again."""
    monkeypatch.setenv("COLUMNS", "200")
    throttled = usage(user="alice", limit=20.0, usage=20.0, throttle_time_seconds=0.5)
    text = status(snapshot(throttled, shadows=(LOOSER,)))[1]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "1 user alice produce 20.0 / 50.0 B/s ≥ 40%, held back now unknown shorter 20.0 B/s 0.50 s" in lines
    assert "looser produce 3 0 0 1 1 1 none" in lines
    document = json.loads(status(snapshot(throttled, shadows=(LOOSER,)), "--json")[1])["shadows"][0]
    entity = document["entities"][0]
    assert (entity["change"], entity["held_back"], entity["throttle_time_seconds"]) == ("shorter", True, None)
    assert document["counts"][0]["changes"] == {"new": 0, "longer": 0, "shorter": 1, "ended": 1, "unchanged": 1}


@pytest.mark.parametrize(
    ("rules", "advice"),
    [
        ({QuotaEntity("alice"): 1.0}, (
            "quotascope quotas set --measure-only producer_byte_rate --default-user --default-client-id --apply"
        )),
        ({QuotaEntity(DEFAULT): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(None, "app"): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(None, DEFAULT): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(DEFAULT, DEFAULT): 1.0, QuotaEntity("alice"): 1.0}, "would overrule limits that are set"),
    ]
)  # fmt: skip
def test_it_says_how_to_measure_without_a_limit(status: Run, rules: dict[QuotaEntity, float], advice: str) -> None:
    """The command advises an unlimited rule, unless it is there or frees clients of levels 6 to 8 of their limits."""
    limits_in_force = limits(rules={PRODUCE: QuotaRules(rules)})
    text = status(snapshot(shadows=(unknown(UnevaluatedReason.FINER),), limits=limits_in_force))[1]
    assert f"producer_byte_rate: {'to measure' if 'quotascope' in advice else 'a rule'}" in text.replace("\n", " ")
    assert advice in " ".join(text.split())


def test_top_and_status_have_a_column_for_shadows() -> None:
    """The column has the longest throttle in any shadow, or else the highest utilization, and needs shadows."""
    closest = tuple(
        in_shadow(usage(user=user, limit=10.0, usage=used)) for user, used in (("alice", 9.0), ("bob", 4.5))
    )
    throttles = {"alice": 1.0, "bob": 0.0, "carol": 0.0}
    rows = [
        usage(user=user, limit=1000.0, usage=900.0, throttle_time_seconds=seconds)
        for user, seconds in throttles.items()
    ]
    shadows = (BUSY, replace(BUSY, name="near", entities=closest))
    for state in (snapshot(*rows, shadows=shadows), snapshot(*rows)):
        for drawn in (view(state, [], 10), screen(state, Trails(), Choices(), 160, 40)):
            text = rendered(drawn, 160)
            assert ("shadow" in text) is bool(state.shadows)
            if state.shadows:
                assert re.search(r"alice.*1.00 s +11.0 s", text)
                assert re.search(r"bob.*0 s +45%", text)
                assert re.search(r"carol.*0 s +- ", text)


HOSTILE = 'a\n"b"\\<b>'


def row(**more: Any) -> dict[str, Any]:
    """Return a step's decision on a client."""
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
    """Counters begin with earlier counts; each has the labels of the catalog."""
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
    """The exporter declares no family that only the stream shows; its own are documented for `serve`."""
    assert not {*STREAM_FAMILIES} & {*families()}


def test_pushed() -> None:
    """OTLP has the same values and labels for shadows as the page, under names that Prometheus translates back."""
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
    """Entities beyond the cap are counted as one, and entities with series keep them."""
    monkeypatch.setattr(runs, "MOST_ENTITIES", 1)
    steps = [[row(user="b")], [row(user="often", throttled_requests=9), row(user="a")]]
    counters = ShadowCounters([])
    for step in steps:
        counters.add(step)
    started_again = ShadowCounters(
        [row(user="often", throttled_requests=9, step=2), row(user="a", step=2), row(user="b")]
    )
    for source in (counters, started_again):
        counted = "kafka_quota_shadow_throttled_requests_total"
        requests = {key[4]: value for key, value in shown(source).items() if key[0] == counted}
        assert requests == {"b": 2, OVERFLOW: 11}


def test_stream(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Options reach the source and the steps, a batch is two lines of output, and the page has all counts so far."""
    file = tmp_path / "c.yaml"
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1}]")
    requests, held, steps = list[Any](), list[Any](), list[bool]()

    def opened(_: str, __: Any, rules: Any, hold_ms: int) -> Any:
        held.append(([rule.name for rule in rules], hold_ms))
        counted = SimpleNamespace(to_pylist=lambda: [row()])
        return SimpleNamespace(counted=lambda: counted, late=0, step=step, kafka=Followed())

    def step(_: Any, *, all_of_it: bool) -> Part:
        steps.append(all_of_it)
        answers = [row(held_back_requests=0), row(user="bob", throttled_requests=4, held_back_requests=3)]
        rows: Any = SimpleNamespace(to_pylist=lambda: answers if not all_of_it else [])
        return Part(decided=4, waiting=1, results=rows, until_ms=9_000)

    def start(*arguments: Any, done: Any, **keywords: Any) -> None:
        requests.append((*arguments, keywords))
        done(3, IngestReport(read=5, kept=5))
        (number,) = page.findall("".join(written))
        text = ask(number).text
        families = {family.name: family for family in text_string_to_metric_families(text)}
        samples = families["kafka_quota_shadow_throttled_requests"].samples
        assert {sample.labels["user"]: sample.value for sample in samples} == {"alice": 4, "bob": 4}

    page, written = re.compile(r"metrics: (\S+)"), list[str]()
    monkeypatch.setattr("typer.echo", lambda text, **_: written.append(f"{text}\n"))
    monkeypatch.setattr("quotascope.pipeline.stream.ShadowStream", opened)
    monkeypatch.setattr("quotascope.pipeline.stream.on_spark", lambda _: Local())
    monkeypatch.setattr("quotascope.pipeline.stream.ingest_topic", start)
    usage = str(tmp_path / "usage")
    options = ["--topic", "kafka://b:1/t", "--candidates", str(file), "--into", usage, "--broker", "1"]
    code, _, err = run("shadow", "stream", *options, "--hold", "2s", "--option", "a=b", "--port", "0")
    assert (code, err) == (0, "")
    assert written[1:] == [
        (
            "batch 3: 5 lines: 5 requests added, 0 second lines of forwarded requests, 0 known before, 0 repeated, 0 "
            "quarantined\n"
        ),
        f"  {Followed().note}\n",
        "  shadows: 4 requests decided, 6 throttled (of 2 entities, 1 newly throttled), 0 late, 1 waiting\n",
        "  shadows: 4 requests decided, 0 throttled (of 0 entities, 0 newly throttled), 0 late, 1 waiting\n",
    ]
    assert steps == [False, True]
    ((source, into, checkpoint, given, keywords),) = requests
    assert given.broker == "1"
    assert source == {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "a": "b"}
    assert (into, checkpoint) == (usage, f"{usage}/stream-t")
    assert (held, keywords["every"]) == ([(["quotas"], 2_000)], "10000 milliseconds")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--mode", "closed"), ("--engine", "local"), ("--kafka-version", "4.2"), ("--wait-saved", None)],
)
def test_what_was_decided_takes_no_question(run: Run, tmp_path: Path, option: str, value: str | None) -> None:
    """Options that would change an answer that the stream has already given are refused by name."""
    file = tmp_path / "c.yaml"
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1}]")
    code, _, err = run(
        "whatif", tmp_path, "--candidates", file, "--decided", option, *([] if value is None else [value])
    )
    assert code == 2
    assert option in err


def test_threads_matter_to_waits_alone(run: Run, tmp_path: Path) -> None:
    """`whatif --io-threads` without `--wait-saved`, where it has no effect, is refused."""
    code, _, err = run("whatif", tmp_path, "--candidates", tmp_path, "--io-threads", 8)
    assert code == 2
    assert "--wait-saved" in err


def test_a_topic_is_a_uri(run: Run) -> None:
    """A topic that is no URI is an error that names the option."""
    code, _, err = run("shadow", "stream", "--topic", "t", "--candidates", "c", "--into", "/u")
    assert code == 2
    assert "--topic" in err


SINCE = ("shadow", "verify", "half", "--folder", "/u", "--since", "2026-11-23T14:00:00Z")


@pytest.mark.parametrize(("seconds", "code"), [(100.0, 0), (105.0, 0), (150.0, 1), (0.0, 1)])
def test_verify(run: Run, monkeypatch: pytest.MonkeyPatch, seconds: float, code: int) -> None:
    """The exit code is 0 if the same entities are throttled for about as long; the table has safe names."""
    times = verify.times_of(1_763_906_400_000, 1_763_907_000_000, None)
    predicted = Figures(throttled=5, seconds=100.0, refused=0)
    happened = Figures(throttled=5 if seconds else 0, seconds=seconds, refused=0)
    entity = Verified(user=HOSTILE, client_id="", predicted=predicted, happened=happened)
    verification = Verification(shadow="half", times=times, entities=(entity,))
    questions: list[Any] = []

    def answer(*arguments: Any) -> Verification:
        questions.append(arguments)
        return verification

    monkeypatch.setattr(verify, "verify_log", answer)
    ended, out, _ = run(*SINCE, "--json")
    document = json.loads(out)
    assert (ended, document["agrees"]) == (code, code == 0)
    assert document["entities"][0]["happened"]["seconds"] == seconds
    assert questions == [("/u", "half", 1_795_442_400_000, None, None)]
    ended, out, _ = run(*SINCE, "--csv", "-")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["predicted_seconds"], row["happened_seconds"], ended) == ("100.0", str(seconds), code)
    ended, out, _ = run(*SINCE, "--html", "-")
    assert "1 min 40 s →" in out
    ended, out, _ = run(*SINCE, "--tolerance", "100")
    assert ended == (0 if seconds else 1)
    assert HOSTILE not in out
    assert "1 min 40 s →" in out


@pytest.mark.parametrize(("seconds", "agrees"), [(5.0, False), (10.0, True), (90.0, True)])
def test_of_a_held_back_client_a_bound_is_verified(*, seconds: float, agrees: bool) -> None:
    """The shadow's throttle time of a held-back client is verified as a lower bound."""
    held = Verified(
        user="alice",
        client_id="",
        predicted=Figures(throttled=1, seconds=10.0),
        happened=Figures(throttled=3, seconds=seconds),
        held_back=True,
    )
    times = verify.times_of(1_763_906_400_000, 1_763_907_000_000, None)
    verification = Verification(shadow="half", times=times, entities=(held,))
    assert verification.agrees(0.1) == agrees
    freed = replace(held, predicted=Figures())
    assert replace(verification, entities=(freed,)).agrees(0.1)
    assert not replace(verification, entities=(replace(freed, held_back=False),)).agrees(0.1)
    text = reported(verify.report(verification, "usage", 10.0), 100)
    assert "≥ 1 → 3" in text
    assert "≥ 10 s →" in text


def test_no_history_to_verify(run: Run) -> None:
    """A missing folder is an error that names it and says how to make a history."""
    makes = "`quotascope ingest LOGS --into FOLDER` makes a history"
    assert run(*SINCE) == (2, "", f"quotascope: /u: there is no such folder; {makes}\n")


def test_nothing_to_verify(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification of nothing has its own exit code; wrong times, two sources or none are mistakes."""

    def nothing(*_: object) -> Verification:
        raise NotVerified("no request")

    monkeypatch.setattr(verify, "verify_log", nothing)
    assert run(*SINCE) == (2, "", "quotascope: no request\n")
    for options in (("--since", "noon"), ("--prometheus", "http://p")):
        assert run(*SINCE, *options)[0] == 2


def test_three_shadows_fit_a_narrow_terminal() -> None:
    """At 80 columns an entity is one line, no word is broken, and a note comes once."""
    state = ThrottleChange.NEW
    entities = tuple(
        in_shadow(
            usage(user=f"service-{number}", client_id="nightly", limit=1.0, usage=2.0, throttle_time_seconds=3.0), state
        )
        for number in range(10)
    )
    counted = {(kind, "1"): changes(new=3, longer=2) for kind in QuotaType}
    shadows = [
        Shadow(name=name, entities=entities, evaluated=dict.fromkeys(counted, 30), changes=counted)
        for name in ("half of everything", "a third", "none")
    ]
    shown = snapshot(shadows=tuple(shadows))
    lines = rendered(Group(counts(shadows), *nearest(shown, 10)), 80).splitlines()
    assert sum("service-7 / nightly" in line and line.rstrip().endswith("-") for line in lines) == 3
    assert len(lines) < 70
    assert sum("A throttle that is new or longer" in line for line in lines) == 1
    words = {word for line in lines for word in line.split()}
    assert {"controller", "mutation", "throttled", "entities", "unchanged", "unknown"} <= words
