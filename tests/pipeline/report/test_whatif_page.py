"""The results of a replay, added up, as a page, and for programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.report.reader import PLAIN, Reader
from tests.pipeline.report.results import (
    HOSTILE,
    MONDAY,
    replayed,
    result,
    seconds,
    table,
    throttled,
    usages,
    whatif_csv,
    whatif_json,
    whatif_page,
)

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.baseline import HELD_BACK_LOGGED
from quotascope.pages.charts import Curve, LimitLine
from quotascope.pipeline.losses import Losses, losses_of
from quotascope.pipeline.rates import GroupUsage, LimitGroup, rate
from quotascope.pipeline.releases import Followed
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.runs.whatif import headline
from quotascope.pipeline.summary import FIGURES, group_of, summary_of
from quotascope.pipeline.usage_charts import legend as legend_of

ALICE = LimitGroup(QuotaType.PRODUCE, "alice", "app1")


def test_candidates_are_added_up_in_their_order() -> None:
    """Candidates have sums, maxima and the worst client in their order, also one that limits no client."""
    rows = [
        throttled(1_000, candidate="tight", delayed_bytes=7),
        throttled(3_000, candidate="tight", user="bob", throttled_share=0.5),
        result(candidate="tight", user="carol"),
    ]
    loose, tight = replayed(*rows, names=["loose", "tight"]).candidates
    assert (loose.limited, loose.hit, loose.worst) == (0, 0, "")
    assert (tight.limited, tight.hit, tight.muted_ms) == (3, 2, 4_000)
    assert (tight.worst, tight.worst_share) == ("bob / app1", 0.5)
    assert (tight.longest_ms, tight.delayed_bytes) == (1_500, 7)


@pytest.mark.parametrize(
    ("levels", "user", "client_id"),
    [
        (["user", "default_user"], "alice", None),
        (["client", "default_client"], None, "app1"),
        (["user_client", "user_default_client", "default_user_client"], "alice", "app1"),
    ],
)
def test_level_says_who_shares_a_limit(levels: list[str], user: str | None, client_id: str | None) -> None:
    """The level says that clients share a user's rule, or users a client-id's."""
    shared = LimitGroup(QuotaType.PRODUCE, user, client_id)
    assert [group_of(result(level=level)) for level in levels] == [shared] * len(levels)


def test_groups_that_wait_longest_come_first() -> None:
    """Groups are sorted by throttle time, then by utilization, above all of a limit of 0; limits are by candidate."""
    rows = [
        result(user="idle", amount=1.0),
        result(user="busy", amount=500.0),
        result(user="blocked", amount=1.0, limit=0.0),
        throttled(10, user="hit", candidate="tight", limit=5.0),
        result(user="hit", limit=50.0),
    ]
    hit, *other_groups = replayed(*rows).groups
    assert hit.limits == {"tight": 5.0, "now": 50.0}
    assert [other_group.group.user for other_group in other_groups] == ["blocked", "busy", "idle"]


def test_csv_keeps_names_as_they_are() -> None:
    """Each row is a line of printable characters, no name is a formula in a spreadsheet, and every name comes back."""
    controls = [f"a{control}b" for control in (*map(chr, range(32)), "\x7f", "\x85", "\u2028", "\u202e")]
    names = ["'", "a=1", "", "a\\b", "=1+1", "+1+1", "-1+1", "@1+1", HOSTILE, '"a"', *controls]
    rows = [throttled(-5, user=name, client_id="=x") for name in names]
    text = whatif_csv(*rows)
    assert all(line.isprintable() for line in text.split("\n"))
    records = list(csv.DictReader(io.StringIO(text, newline="")))
    cells = [row["user"] for row in records]
    assert [json.loads(cell) if cell.startswith('"') else cell.removeprefix("'") for cell in cells] == names
    assert cells[:8] == ["''", "a=1", "", "a\\b", "'=1+1", "'+1+1", "'-1+1", "'@1+1"]
    assert {row["client_id"] for row in records} == {"'=x"}
    assert {row["muted_ms"] for row in records} == {"-5"}
    assert {row["limit"] for row in records} == {"1000"}
    assert {row["broker"] for row in records} == {""}


def test_page_reports_all() -> None:
    """Candidates, throttled clients, and usage beside the limits."""
    summary = replayed(
        throttled(90_000, candidate="tight", limit=2_000.0),
        result(candidate="now", limit=500_000.0),
        throttled(1_000, candidate="tight", user="bob", level="default_user"),
    )
    drawn = usages(seconds((n, 1_000 + n) for n in range(600)), [ALICE])
    text = Reader(whatif_page(summary, drawn)).text
    for words in (
        "Then: “tight”, 1 min 31 s (+1 min 31 s).",
        "2 kB/s",
        "alice / app1: produce",
        "on broker 1",
        "Far above: now, 500 kB/s",
        "1 more group",
        "Difference to “now”",
        "2026-11-23 00:00:00 UTC",
        "overstates throttling under a lower limit",
    ):
        assert words in text, words


def test_a_legend_has_the_candidates_in_their_order() -> None:
    """Candidates keep their colors in each chart, whatever time each throttles the group for."""
    rows = [throttled(90_000, candidate="tight"), throttled(1_000, candidate="now")]
    drawn = usages(seconds((n, 1_000) for n in range(600)), [ALICE])
    assert "1 kB/s: all 2 candidates" in Reader(whatif_page(replayed(*rows), drawn)).text


def test_a_chart_that_tells_no_candidates_apart_is_folded() -> None:
    """A chart with one limit under all candidates is folded below the others; a single candidate's is open."""
    rows = [
        *(throttled(90_000, candidate=name, limit=900.0) for name in ("now", "tight")),
        *(throttled(1_000, candidate=name, user="bob", limit=limit) for name, limit in (("now", 1.0), ("tight", 2.0))),
    ]
    summary = replayed(*rows)
    groups = [group.group for group in summary.groups]
    drawn = usages(seconds((n, 1_000) for n in range(600)) + seconds([(0, 1)], user="bob"), groups)
    page = whatif_page(summary, drawn)
    folded = [part.split("</details>")[0] for part in page.split("<details>")[1:]]
    (chart,) = [part for part in folded if "<h3>" in part]
    assert "<h3>alice / app1: produce</h3>" in chart
    assert "900 B/s: all 2 candidates" in chart
    assert page.index("bob / app1: produce</h3>") < page.index("alice / app1: produce</h3>")
    alone = replayed(throttled(9_000, candidate="tight"), names=("tight",))
    assert "<details><summary><h3>" not in whatif_page(alone, drawn)


def test_equal_limits_far_above_are_one_line() -> None:
    """Limits far above the chart are named once for each value, with their candidates."""
    names = ("a", "b", "c")
    rows = [result(candidate=name, limit=limit) for name, limit in zip(names, (9e6, 9e6, 8e6), strict=True)]
    text = Reader(whatif_page(replayed(*rows, names=names), usages(seconds([(0, 1)]), [ALICE]))).text
    assert "Far above: a, b, 9 MB/s" in text
    assert "Far above: c, 8 MB/s" in text


def test_quota_types_are_words() -> None:
    """Quota types above a chart are the same words as in the tables."""
    row = throttled(1_000, candidate="tight", quota_type="controller_mutation")
    summary = replayed(row)
    rows = seconds([(0, 1)], quota_type="controller_mutation")
    drawn = usages(rows, [group.group for group in summary.groups])
    text = Reader(whatif_page(summary, drawn)).text
    assert "alice / app1: controller mutation|on controller 1" in text
    assert "controller_mutation" not in text


def test_figures_of_a_client() -> None:
    """Each figure has its unit: results hold ms, bytes and shares."""
    row = throttled(
        90_000,
        candidate="tight",
        limit=2_000.0,
        requests=1_234,
        throttled_requests=56,
        longest_throttle_ms=1_500,
        delayed_bytes=2_500_000,
        refused_mutations=1_000,
        recovery_ms=125_000,
    )
    page = Reader(whatif_page(replayed(row), {})).text
    assert "tight|2 kB/s|1 alice / app1|1,234|56|1 min 30 s|10 %|1.50 s|2.5 MB|1,000|2 min 5 s" in page


def test_what_fetches_of_unknown_size_add_is_unknown() -> None:
    """A client with only unknown sizes is not called unthrottled, and sums are lower bounds."""
    rows = [result(quota_type="fetch", requests_of_unknown_size=9), throttled(90_000, user="bob", quota_type="fetch")]
    summary = replayed(*rows, names=("now",))
    text = Reader(whatif_page(summary, {})).text
    assert "“now” would have throttled at least 1 of 2 limited quotas of clients for at least 1 min 30 s." in text
    assert "alice / app1|fetch|now|1 kB/s|1 alice / app1|10|unknown|unknown|unknown|unknown|unknown|0|unknown" in text
    assert "bob / app1|fetch|now|1 kB/s|1 bob / app1|10|3|1 min 30 s|" in text
    assert "limited|2|throttled|≥ 1|throttled for|≥ 1 min 30 s|requests throttled|≥ 15 %|" in text
    assert headline(replayed(rows[0])) == "No candidate would have throttled any client for requests of known size."
    mutation = result(quota_type="controller_mutation", requests_of_unknown_size=9)
    text = Reader(whatif_page(replayed(mutation), {})).text
    assert text.count("1 alice / app1|10|unknown|unknown|unknown|unknown|unknown|unknown|unknown") == 1


@given(name=st.text(max_size=40))
def test_any_name(name: str) -> None:
    """Names of any characters make a page that can be written and read."""
    summary = replayed(throttled(5, candidate="now", user=name, client_id=name))
    page = whatif_page(summary, {})
    assert Reader(page.encode().decode()).kinds <= PLAIN


@pytest.mark.parametrize("mode", Mode)
def test_page_says_what_its_mode_means(mode: Mode) -> None:
    """The page explains its mode; only the closed loop has delays. In both modes the log lacks something."""
    text = Reader(whatif_page(replayed(throttled(5), mode=mode), {})).text
    assert "too low for request time" in text
    assert "≥" not in text
    assert ("overstates throttling" in text) == (mode is Mode.OPEN_LOOP)
    assert ("later by" in text) == (mode is Mode.CLOSED_LOOP)


@pytest.mark.parametrize(
    ("rows", "names", "sentence"),
    [
        ([], ["now"], "No candidate limits any client of this history."),
        ([result()], ["now"], "No candidate would have throttled any client."),
        ([throttled(5_000)], ["now"], "“now” would have throttled 1 of 1 limited quotas of clients for 5 s."),
        (
            [throttled(60_000, candidate="tight"), throttled(5_000)],
            ["tight", "middle", "now"],
            (
            "Base: “tight” would have throttled 1 of 1 limited quotas of clients for 1 min. Least: “middle”, 0 s (-1 "
            "min). Most: “now”, 5 s (-55 s)."),
        ),
        (
            [throttled(5_000, candidate=name) for name in ("now", "same")] + [throttled(60_000, candidate="tight")],
            ["now", "same", "tight"],
            (
            "Base: “now” would have throttled 1 of 1 limited quotas of clients for 5 s. Then: “tight”, 1 min (+55 "
            "s). As the base: 1 candidate."),
        ),
        (
            [throttled(5_000, candidate=name) for name in ("now", "same", "again")],
            ["now", "same", "again"],
            (
            "“now” would have throttled 1 of 1 limited quotas of clients for 5 s. No other candidate would have "
            "throttled any client differently."),
        ),
    ],
    ids=["unlimited", "not throttled", "one", "several", "one differs", "none differs"]
)  # fmt: skip
def test_headline(rows: list[dict[str, Any]], names: list[str], sentence: str) -> None:
    """
    The headline differs for limits that throttle no client and for no limits.

    Of several candidates it has the first, and the least and most throttling.
    """
    summary = replayed(*rows, names=names)
    assert headline(summary) == sentence
    throttles = any(row["throttled_requests"] for row in rows)
    assert Reader(whatif_page(summary, {})).reported.count(sentence) == 1 + (not throttles)


@pytest.mark.parametrize(("hours", "drawn"), [(5, False), (6, True)])
def test_hours_are_drawn_where_they_are_seen(hours: int, *, drawn: bool) -> None:
    """A map of the week of a log of an hour would be gray; hours without requests are not zero."""
    summary = replayed(throttled(5, candidate="tight"))
    seen = seconds((3_600 * n, 1_000) for n in range(hours))
    groups = usages(seen, [ALICE], hours * 3_600_000)
    text = Reader(whatif_page(summary, groups)).text
    assert ("Mon 00h: 90.9 B/s" in text) is drawn
    assert (f"Mon {hours:02}h: no data" in text) is drawn


def test_differences_to_the_first_candidate() -> None:
    """
    The table of differences has a user above its clients.

    A client that a candidate does not limit is unlimited under it, not unknown.
    """
    summary = replayed(
        throttled(9_000, candidate="now", client_id="a"),
        throttled(1_000, candidate="tight", client_id="a", refused_mutations=4),
        throttled(5_000, candidate="tight", client_id="b", limit=7.0, level="user"),
        throttled(2_000, candidate="now", user="bob"),
        result(candidate="now", user="carol"),
        result(candidate="tight", user="carol"),
    )
    (compared,) = summary.comparisons
    assert {str(change): count for change, count in compared.changes.items() if count} == {
        "new": 1,
        "shorter": 1,
        "ended": 1,
    }
    (alice, clients), (bob, _) = compared.users
    assert (alice.name, alice.gained_ms, alice.quota) == ("user alice", -3_000, "")
    assert [(client.name, client.gained_ms) for client in clients] == [("alice / a", -8_000), ("alice / b", 5_000)]
    assert (bob.gained_ms, compared.candidate.requests) == (-2_000, 40)
    text = Reader(whatif_page(summary, {})).text
    assert "|alice / b|produce|5 s|+5 s|30 %|+30 points|0|0|7 B/s|3 user alice|" in text
    assert "|bob / app1|produce|0 s|-2 s|0 %|-30 points|0|0|unlimited|no rule|" in text
    assert "carol" not in text[text.index("Clients that are throttled") : text.index("|Candidates, open loop|")]
    document = whatif_json(summary)
    assert (document["mode"], len(document["results"])) == ("open_loop", 6)
    assert {row["user"] for row in document["results"]} == {"alice", "bob", "carol"}
    base, tight = document["candidates"]
    assert (base["name"], base["difference"], tight["name"]) == ("now", None, "tight")
    assert tight["difference"] == {
        "muted_ms": -5_000,
        "request_share": 0.0,
        "refused_mutations": 4,
        "changes": {"new": 1, "longer": 0, "shorter": 1, "ended": 1, "unchanged": 0, "unknown": 0},
    }


def test_a_raised_limit_does_not_free_what_was_held_back() -> None:
    """
    A raised limit does not show the demand of a throttled client.

    That it is not throttled in the replay says nothing of what it would send.
    """
    held = {"held_back_requests": 3}
    rows = [
        throttled(9_000, candidate="now", **held),
        result(candidate="wide", limit=5_000.0, **held),
        throttled(9_000, candidate="now", user="bob", **held),
        throttled(9_000, candidate="wide", user="bob", **held),
        throttled(9_000, candidate="now", user="carol", **held),
    ]
    summary = replayed(*rows, names=["now", "wide"])
    (compared,) = summary.comparisons
    assert {str(change): count for change, count in compared.changes.items() if count} == {
        "unchanged": 1,
        "ended": 1,  # without any limit
    }
    assert compared.unknown == 1
    text = Reader(whatif_page(summary, {})).text
    assert "|alice / app1|produce|wide|5 kB/s|1 alice / app1|10|unknown|unknown|" in text
    assert "|alice / app1|produce|unknown|≥ -9 s|unknown|≥ -30 points|5 kB/s|1 alice / app1|" in text
    assert "|carol / app1|produce|0 s|-9 s|0 %|-30 points|unlimited|no rule|" in text
    assert "|bob / app1|produce|wide|1 kB/s|1 bob / app1|10|≥ 3|≥ 9 s|" in text
    assert "understates it under a higher one for clients that were throttled while the log was written" in text
    assert HELD_BACK_LOGGED in text
    alone = replayed(rows[1], names=["wide"])
    assert headline(alone) == "No candidate would have throttled any client by the requests that the log has."
    document = whatif_json(summary)
    assert [candidate["held_back_requests"] for candidate in document["candidates"]] == [9, 6]
    assert {row["held_back_requests"] for row in document["results"]} == {3}
    lines = whatif_csv(*rows).splitlines()
    assert lines[1].split(",")[lines[0].replace('"', "").split(",").index("held_back_requests")] == "3"


def test_legend_draws_limits_as_the_chart_does() -> None:
    """Limits have the color of the candidate, dashed from the ninth on; equal limits share a line."""
    curve = Curve(begin_ms=0, end_ms=1_000, piece_ms=1_000, times_ms=[0], mean=[1.0], peak=[1.0])
    drawn = GroupUsage(broker="1", usage=curve, by_hour=[])
    values = {0: 1_000.0, 7: 2_000.0, 8: 3_000.0, 9: 3_000.0}
    limits = [LimitLine(name=f"c{n}", value=value, color=n) for n, value in values.items()]
    legend = legend_of(drawn, limits, lambda value: rate(QuotaType.PRODUCE, value))
    keys = [child for child in legend if isinstance(child, Element)]
    marks = [path for key in keys for path in key.iter("path") if "limit" in path.attrib["class"]]
    assert [(mark.attrib["class"], mark.get("stroke-dasharray")) for mark in marks] == [
        ("limit s0", ""),
        ("limit s7", ""),
        ("limit s1", "6 4"),
    ]
    names = ["".join(key.itertext()).strip() for key in keys]
    assert names == ["used, mean", "peak", "1 kB/s: c0", "2 kB/s: c7", "3 kB/s: c8, c9"]


def test_an_unknown_share_is_not_none(tmp_path: Path) -> None:
    """A number of throttled clients is a lower bound, and zero unknown, while the log's losses are unknown."""
    rows = [throttled(1_000), result(client_id="app2", candidate="tight")]
    unknown = losses_of(str(tmp_path))  # a folder without numbers of requests
    span = (MONDAY, MONDAY + 3_600_000)
    for losses, is_bound in ((unknown, True), (Losses(), False)):
        summary = summary_of(table(*rows), ("now", "tight"), "usage", span, Mode.OPEN_LOOP, Followed(), losses=losses)
        clients_throttled = next(figure for figure in FIGURES if figure.key == "hit")
        cells = [clients_throttled.cell(candidate) for candidate in summary.candidates]
        assert cells == (["≥ 1", "unknown"] if is_bound else ["1", "0"])
        assert any("or may be" in note for note in summary.notes) is is_bound


@pytest.mark.parametrize(
    ("amount", "limit", "noted"),
    [(2_147_483.0, 1.0, False), (2_147_484.0, 1.0, True), (1e12, 1e6, False), (1.0, 0.0, True)],
)
def test_a_throttle_that_overflows_is_noted_where_there_may_be_one(
    amount: float,
    limit: float,
    noted: bool,  # noqa: FBT001
) -> None:
    """Clients that share a limit and would need 24.8 days to send this much could be throttled for longer than that."""
    rows = [result(client_id=client, amount=amount / 2, limit=limit) for client in ("app1", "app2")]
    notes = replayed(*rows, names=("now",)).notes
    assert any("24.8 days" in note for note in notes) is noted
    assert any(note.startswith("Throttle times follow Kafka ") for note in notes)
