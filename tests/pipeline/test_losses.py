"""Losses of a log are found in the numbers of its requests, carried to every figure, and kept from commands."""

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders.requests import line
from tests.pipeline.ingest.ingesting import log
from tests.pipeline.log_lines import CAPTURE, captured
from tests.pipeline.request_log.forms import FORMS

from quotascope.pipeline.errors import BrokersMixed
from quotascope.pipeline.history.connections import connections_of
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.losses import Losses, check_brokers, losses_in, losses_of
from quotascope.pipeline.recommend.policy import Policy
from quotascope.pipeline.request_log.parsing import LogSource, Parsed, parse_lines
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.recommend import advise
from quotascope.pipeline.runs.recommend import document as recommend_json
from quotascope.quotas import kafka_configs

JAVA = "apache-kafka-java"
NAMED = IngestOptions(broker="1")
CAPTURES = sorted(CAPTURE.parent.glob("kafka-*-request.log.gz"))


def parsed(lines: Sequence[bytes], broker: str = "1") -> Parsed:
    return parse_lines(lines, range(1, len(lines) + 1), LogSource(file="a", broker=broker))


def losses(*parts: Parsed, nodes: int = 0) -> Losses:
    return losses_in(pa.concat_tables([connections_of(part.requests) for part in parts]), nodes=nodes)


def numbered(
    numbers: Sequence[int], *, port: int = 40_000, second: int = 0, software: str = "librdkafka", **fields: Any
) -> list[bytes]:
    """Return requests of a connection, one a second."""
    return [
        line(
            header={"correlationId": number, "clientId": fields.get("client", "app")},
            connection=f"10.0.0.1:{fields.get('own', 9092)}-10.0.0.9:{port}-0-{port}",
            time=f"2026-11-21 09:{(second + index) // 60:02}:{(second + index) % 60:02},000",
            clientInformation={"softwareName": software, "softwareVersion": "1"},
        )
        for index, number in enumerate(numbers)
    ]  # fmt: skip


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.removesuffix("-request.log.gz"))
def test_whole_logs_of_real_brokers(path: Path) -> None:
    """Logs of librdkafka, kafka-python and Java lack nothing; a log of every tenth line lacks nine tenths."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
    whole = losses(parsed(lines))
    assert (whole.missing(), whole.values()["clients"]) == (0.0, [])
    assert list(whole.missing_notes()) == []
    chosen = random.Random(1)  # noqa: S311 - a sample
    for kept_share in (0.1, 0.5, 0.9):
        part = losses(parsed([text for text in lines if chosen.random() < kept_share]))
        assert part.missing(broker="1") == pytest.approx(1 - kept_share, abs=0.04)
        assert all(
            part.missing(user, name) > 0
            for broker, user, name in part.clients
            if part.clients[broker, user, name].all > 200
        )


@pytest.mark.parametrize(
    ("parts", "nodes", "missing", "undecided"),
    [
        ([numbered(range(5, 15))], 0, 0.0, 0),
        ([numbered([5, 6, 9])], 0, 0.5, 0),
        # rotated within, out of order
        ([numbered(range(10, 20), second=10), numbered(range(10))], 0, 0.0, 0),
        ([numbered(range(10)), numbered(range(20, 30), second=80)], 0, 1 - 19 / 29, 0),
        # a reconnect begins again, and so do numbers after the largest
        ([numbered(range(10)), numbered(range(10), port=40_001)], 0, 0.0, 0),
        ([numbered(range(2**31 - 9, 2**31)), numbered(range(9), second=70)], 0, 0.0, 0),
        # a Java client numbers its requests to all connections together
        ([numbered(range(0, 20, 2), software=JAVA), numbered(range(1, 20, 2), port=41_000, software=JAVA)], 0, 0.0, 0),
        (
            [numbered(range(0, 30, 3), software=JAVA), numbered(range(1, 30, 3), port=41_000, software=JAVA)],
            *(0, 1 - 19 / 28, 0),
        ),
        ([numbered(range(0, 20, 2), software=JAVA)], 0, 0.5, 0),
        # to nodes whose logs are not here, too
        ([numbered(range(0, 20, 2), software=JAVA)], 3, 0.0, 1),
        ([numbered(range(0, 20, 2), software=JAVA), numbered(range(0, 20, 2), client="c", port=3)], 3, 0.5, 1),
    ],
)  # fmt: skip
def test_numbers(parts: list[list[bytes]], nodes: int, missing: float, undecided: int) -> None:
    """Gaps count, whatever order lines come in; a Java client's are open while another node's log is not here."""
    losses_found = losses(*map(parsed, parts), nodes=nodes)
    assert losses_found.missing() == pytest.approx(missing)
    assert len(losses_found.values()["undecided_clients"]) == undecided
    assert any("of the 3 nodes of the cluster, the logs of 1 are here" in note for note in losses_found.notes) is bool(
        undecided
    )


def test_java_clients_of_all_brokers() -> None:
    """A Java client has no missing requests in the logs of all brokers that Metadata names."""
    lines_of_one = parsed(numbered(range(0, 40, 2), software=JAVA), "1")
    two = parsed(numbered(range(1, 40, 2), port=41_000, own=9093, software=JAVA), "2")
    assert losses(lines_of_one, two, nodes=2).missing() == 0.0
    assert losses(lines_of_one, nodes=2).values()["undecided_clients"][0]["missing_share_at_most"] == pytest.approx(0.5)


@pytest.mark.parametrize(("nodes", "share"), [(1, 0.5), (0, 0.5), (3, None)])
def test_numbers_that_another_node_may_have(nodes: int, share: float | None) -> None:
    """A gap of a Java client is a loss with one node, unknown with more, and conditional if no node is named."""
    losses_found = losses(parsed(numbered(range(0, 20, 2), software=JAVA)), nodes=nodes)
    assert (
        losses_found.share()
        == losses_found.share(broker="1")
        == losses_found.values()["brokers"][0]["missing_share"]
        == share
    )
    assert ("unless Java clients" in " ".join(losses_found.missing_notes())) is (nodes == 0)
    whole = losses(parsed(numbered(range(20), software=JAVA)), nodes=nodes)
    assert (whole.share(), [*whole.missing_notes()]) == (0.0, [])


def test_times_without_milliseconds() -> None:
    """Times without milliseconds are noted, by the pattern or when they all end in zeros."""
    zeros = losses(parsed(numbered(range(30))))
    assert zeros.precision_ms == {"1": 1_000}
    assert "whole seconds only" in " ".join(zeros.notes)
    assert losses(parsed(numbered(range(3)))).precision_ms == {}
    short = [
        line(time=f"2026-11-21 09:02:00{fraction}", header={"correlationId": index})
        for index, fraction in enumerate(("", ",5", ",25"))
    ]
    assert losses(parsed(short)).precision_ms == {"1": 1_000}
    assert losses(parsed(short[1:])).precision_ms == {"1": 100}


SMALL = [text for text in captured() if b'"isForwarded":false' in text][:60]


def _parts(text: str, size: int) -> list[str]:
    cut = [text[index : index + size] for index in range(0, len(text), size)]
    tags = ["P"] * (len(cut) - 1) + ["F"]
    return [f"2026-11-21T09:02:04.237000001Z stdout {tag} {piece}" for tag, piece in zip(tags, cut, strict=True)]


@given(
    st.permutations(range(len(SMALL))),
    st.sets(st.integers(0, len(SMALL) - 1), max_size=40),
    st.sets(st.integers(0, len(SMALL) - 1), max_size=10),
    st.sampled_from([*FORMS, "CRI in pieces", "cut"]),
)
@example(list(range(len(SMALL))), {3}, set(), "CRI in pieces")
@example(list(range(len(SMALL))), set(), set(), "docker json-file")
def test_what_happens_to_lines(order: list[int], dropped: set[int], doubled: set[int], form: str) -> None:
    """Lines that are dropped, doubled, reordered and wrapped are counted exactly, without false losses."""
    kept_share = [number for number in order if number not in dropped]
    texts: list[bytes] = []
    for number in kept_share:
        for _ in range(1 + (number in doubled)):
            text = SMALL[number].decode()
            cut = number % 7 == 0 and form == "cut"
            if form == "CRI in pieces":
                texts += map(str.encode, _parts(text, 300))
            elif form == "cut":
                texts.append(text[:250].encode() if cut else text.encode())
            else:
                texts.append(FORMS[form](text).encode())
    losses_found, plain = parsed(texts), parsed(SMALL)
    readable = [number for number in kept_share if not (form == "cut" and number % 7 == 0)]
    identity = dict(zip(range(len(SMALL)), plain.requests["identity"].to_pylist(), strict=True))
    assert set(losses_found.requests["identity"].to_pylist()) == {identity[number] for number in readable}
    assert set(losses_found.quarantine["reason"].to_pylist()) <= {"truncated"}
    # each once, as ingest adds them
    once = parsed([SMALL[number] for number in sorted(readable)])
    rows = plain.requests.select(("connection", "correlation_id", "client_id")).to_pylist()
    gaps = 0
    for connection in {row["connection"] for row in rows}:
        logged = sorted(
            rows[number]["correlation_id"] for number in readable if rows[number]["connection"] == connection
        )
        if logged and "127.0.0.1:29094" not in connection:
            gaps += logged[-1] - logged[0] + 1 - len(logged)
    lost = losses(once)
    steps = [step for (_, user, _), step in lost.clients.items()]
    assert sum(step.all - step.seen for step in steps) >= gaps
    assert bool(list(lost.missing_notes())) >= bool(gaps)


def sampled(folder: Path, kept_share: float) -> str:
    """The history of a part of a log."""
    chosen = random.Random(2)  # noqa: S311 - a sample
    path = log(folder, *(text for text in captured() if chosen.random() < kept_share))
    report = ingest_logs([path], str(folder / "usage"), NAMED)
    assert report.losses is not None
    assert bool(list(report.losses.missing_notes())) is (kept_share < 1)
    return str(folder / "usage")


@pytest.mark.slow
def test_limits_of_a_tenth_become_no_commands(tmp_path: Path) -> None:
    """Limits from a log that lacks nine tenths are marked with the share and have no commands."""
    policy = Policy(short_log=True)
    for kept_share in (0.1, 1.0):
        folder = tmp_path / f"{kept_share}"
        folder.mkdir()
        advice = advise(sampled(folder, kept_share), policy)
        commands = kafka_configs(advice.commanded, bootstrap_servers="b:9092")
        document = json.loads(json.dumps(recommend_json(advice, commands), default=str))
        big = [row for row in document["recommended"] if row["requests"] > 20]
        assert {row["refused"] for row in big} == {kept_share < 1}
        assert all((row["missing_share"] > 0.8) is (kept_share < 1) for row in big)
        assert bool(advice.refusals) is (kept_share < 1)
        assert (len(commands.lines) > 2) is (kept_share == 1)


def test_lines_of_the_quarantine_are_losses(tmp_path: Path) -> None:
    """Quarantined lines count as losses of their broker, also where no number shows a gap."""
    lines = numbered(range(10))
    path = log(tmp_path, *lines[:9], lines[9][:300], b"started (kafka.server.KafkaServer)")
    ingest_logs([path], str(tmp_path / "usage"), NAMED)
    losses_found = losses_of(str(tmp_path / "usage"))
    assert losses_found.unreadable == {"1": 1}
    assert losses_found.missing() == pytest.approx(0.1)
    assert any("1 request of broker 1 could not be read" in note for note in losses_found.notes)


def test_losses_of_less_than_a_minute(tmp_path: Path) -> None:
    """Losses within a minute are reported at ingest, and for a period that begins within their minute."""
    path = log(tmp_path, *numbered([0, 10, 20, 30], second=7))
    report = ingest_logs([path], str(tmp_path / "usage"), NAMED)
    assert report.losses is not None
    assert "lacks at least 90 %" in " ".join(report.losses.missing_notes())
    index = 1_795_251_600_000  # 09:00:00
    assert losses_of(str(tmp_path / "usage"), (index + 7_500, index + 7_501)).missing() == pytest.approx(0.9)
    assert losses_of(str(tmp_path / "usage"), (index + 60_000, index + 61_000)).requests == {}


def test_a_history_without_numbers(tmp_path: Path) -> None:
    """A history without numbers says that losses are unknown, not that there are none."""
    assert losses_of(str(tmp_path)).share() is None
    assert (
        losses_of(str(tmp_path))
        .notes[0]
        .startswith("How many requests the logs lack, and how exact their times are, is unknown")
    )


@pytest.mark.parametrize("broker", ["", "1"])
def test_histories_that_mix_brokers(tmp_path: Path, broker: str) -> None:
    """A folder in which a name stands for two brokers, or for none, gives no figures."""
    rows = connections_of(pa.concat_tables([parsed(numbered(range(9), own=port)).requests for port in (9092, 9093)]))
    place = rows.schema.get_field_index("broker")
    rows = rows.set_column(place, rows.schema.field("broker"), pa.array([broker] * len(rows)))
    why = "the same minute" if broker else "without a name"
    with pytest.raises(BrokersMixed, match=why):
        check_brokers(rows, str(tmp_path))
