from __future__ import annotations

import csv
import io
import json

import pytest
from tests.pipeline.report.names import HOSTILE
from tests.pipeline.report.results import account, result, table, throttled

from quotascope.metrics import QuotaType
from quotascope.pipeline.report.documents import as_csv, as_json
from quotascope.pipeline.report.summary import Group, by_candidate, by_group, group_of
from quotascope.pipeline.whatif.mode import Mode


def test_candidates_are_added_up_in_their_order() -> None:
    """Sums, maxima, and whose share is worst; a candidate that limits nobody is there as well."""
    rows = [
        throttled(1_000, candidate="tight", delayed_bytes=7),
        throttled(3_000, candidate="tight", user="bob", throttled_share=0.5),
        result(candidate="tight", user="carol"),
    ]
    loose, tight = by_candidate(rows, ["loose", "tight"])
    assert (loose.limited, loose.hit, loose.worst) == (0, 0, "")
    assert (tight.limited, tight.hit, tight.muted_ms) == (3, 2, 4_000)
    assert (tight.worst, tight.worst_share) == ("bob / app1", 0.5)
    assert (tight.longest_ms, tight.delayed_bytes) == (1_500, 7)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("user", Group(QuotaType.PRODUCE, "alice", None)),
        ("default_user", Group(QuotaType.PRODUCE, "alice", None)),
        ("client", Group(QuotaType.PRODUCE, None, "app1")),
        ("default_client", Group(QuotaType.PRODUCE, None, "app1")),
        ("user_client", Group(QuotaType.PRODUCE, "alice", "app1")),
        ("user_default_client", Group(QuotaType.PRODUCE, "alice", "app1")),
        ("default_user_client", Group(QuotaType.PRODUCE, "alice", "app1")),
    ],
)
def test_level_says_who_shares_a_limit(level: str, expected: Group) -> None:
    """Clients of a user share its rule, users of a client-id share that one's."""
    assert group_of(result(level=level)) == expected


def test_groups_that_wait_longest_come_first() -> None:
    """Then those that use most of their limit; limits are by candidate."""
    rows = [
        result(user="idle", amount=1.0),
        result(user="busy", amount=500.0),
        throttled(10, user="hit", candidate="tight", limit=5.0),
        result(user="hit", limit=50.0),
    ]
    hit, busy, idle = by_group(rows)
    assert hit.limits == {"tight": 5.0, "now": 50.0}
    assert (busy.group.user, idle.group.user) == ("busy", "idle")


def test_csv_keeps_names_as_they_are() -> None:
    """Line ends and quotes come back, and so does what has an apostrophe before it, lest a spreadsheet takes it for a formula; numbers stay numbers."""
    names = [HOSTILE, "'", "a=1", "", *(f"{each}1+1" for each in "=+-@\t\r\n")]
    rows = [throttled(-5, user=name, client_id="=x") for name in names]
    text = as_csv(table(*rows), Mode.OPEN_LOOP)
    found = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["user"].removeprefix("'") for row in found] == names
    assert {row["user"][0] for row in found[4:]} == {"'"}
    assert (found[1]["user"], found[2]["user"]) == ("''", "a=1")
    assert {row["client_id"] for row in found} == {"'=x"}
    assert {row["muted_ms"] for row in found} == {"-5"}
    assert {row["limit"] for row in found} == {"1000"}
    assert {row["broker"] for row in found} == {""}


def test_json_holds_all() -> None:
    """Candidates added up, and every row."""
    read = json.loads(as_json(account(throttled(5, user=HOSTILE))))
    assert read["mode"] == "open_loop"
    assert [each["name"] for each in read["candidates"]] == ["now", "tight"]
    assert read["results"][0]["user"] == HOSTILE
