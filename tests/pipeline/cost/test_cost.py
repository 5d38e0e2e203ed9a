"""Costs of teams: months, sums, gaps, clusters, and the columns of FOCUS."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.cost.logs import moved, stored
from tests.pipeline.prometheus.scraped import Usage, every, past_of

from quotascope.metrics.catalog.teams import UNOWNED, Clients, Team
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.report import Rows, html
from quotascope.pipeline.cost.charges import NoCurrency, SameName, find_charges, price_of
from quotascope.pipeline.cost.focus import COLUMNS, OWN_COLUMNS, as_csv
from quotascope.pipeline.cost.month import Month
from quotascope.pipeline.cost.report import document, report
from quotascope.pipeline.cost.usage import ClusterUse, TeamBytes, use_of_history, use_of_past
from quotascope.quotas.team_finder import TeamFinder

NOVEMBER = Month(2026, 11)
BEGIN_S, END_S = NOVEMBER.span_s
LATER_S = END_S + 10 * 86_400
IN, OUT = QuotaType.PRODUCE, QuotaType.FETCH


def team(name: str, user: str, price_in: float | None = None, price_out: float | None = None) -> Team:
    return Team(
        name=name,
        clients=(Clients(user=user),),
        contact=f"#{name}",
        price_per_gb_in=price_in,
        price_per_gb_out=price_out,
        currency=None if price_in is None and price_out is None else "EUR",
    )


PAYMENTS, ETL, FREE = team("payments", "alice", 0.05, 0.1), team("etl", "spark", 0.02), team("free", "bob")
TEAMS = (PAYMENTS, ETL, FREE)


def use(
    bytes_: dict[tuple[str, QuotaType], TeamBytes], cluster: str = "prod", seen_s: float | None = None
) -> ClusterUse:
    """Return the bytes of a cluster of which all of November was seen."""
    return ClusterUse(
        cluster=cluster,
        source="usage",
        seen_s=END_S - BEGIN_S if seen_s is None else seen_s,
        until_s=END_S,
        bytes=bytes_,
    )


@pytest.mark.parametrize(
    ("text", "begin", "end", "hours"),
    [
        ("2026-11", "2026-11-01T00:00:00+00:00", "2026-12-01T00:00:00+00:00", 720),
        ("2026-12", "2026-12-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00", 744),
        ("2028-02", "2028-02-01T00:00:00+00:00", "2028-03-01T00:00:00+00:00", 696),
        ("2026-03", "2026-03-01T00:00:00+00:00", "2026-04-01T00:00:00+00:00", 744),  # clocks change in it elsewhere
    ],
)
def test_a_month_is_one_of_utc(text: str, begin: str, end: str, hours: float) -> None:
    """A month has whole days in UTC, wherever the command runs."""
    month = Month.parse(text)
    assert (month.begin.isoformat(), month.end.isoformat(), month.hours, str(month)) == (begin, end, hours, text)
    assert Month.before(month.span_s[1]) == month
    assert Month.before(month.span_s[1] - 0.001) < month


@pytest.mark.parametrize(
    "text", ["2026", "2026-13", "2026-00", "26-11", "2026-1", "0001-01", "9999-12", "\uff12026-11", ""]
)
def test_what_is_no_month_is_refused(text: str) -> None:
    """A text that is no month is refused with an example."""
    with pytest.raises(ValueError, match="such as 2026-11"):
        Month.parse(text)


def test_only_requests_of_the_month_are_in_it(tmp_path: Path) -> None:
    """The month has the requests from its first millisecond to the one before the next month."""
    folder = stored(
        tmp_path,
        moved("2026-10-31T23:59:59.999", "alice", produced=1),
        moved("2026-11-01T00:00:00", "alice", produced=10),
        moved("2026-11-30T23:59:59.999", "alice", fetched=100),
        moved("2026-12-01T00:00:00", "alice", produced=1_000),
    )
    cluster_use = use_of_history(folder, NOVEMBER, TeamFinder(TEAMS), "prod", LATER_S)
    assert {key: used.amount for key, used in cluster_use.bytes.items()} == {
        ("payments", IN): 10,
        ("payments", OUT): 100,
    }


def test_hours_that_were_not_seen_are_no_figure(tmp_path: Path) -> None:
    """The hours of a cluster are those of its least seen broker, without gaps between logs."""
    day = datetime(2026, 11, 2, tzinfo=UTC)
    quarters = [day + timedelta(minutes=15 * number) for number in range(96)]
    requests = [moved(at.isoformat(), "alice", produced=1_000) for at in quarters if not 8 <= at.hour < 14]
    requests += [moved(at.isoformat(), "alice", produced=1_000, broker="2") for at in quarters if at.hour < 3]
    cluster_use = use_of_history(stored(tmp_path, *requests), NOVEMBER, TeamFinder(TEAMS), "prod", LATER_S)
    assert cluster_use.seen_s == 3 * 3_600
    bill = find_charges([cluster_use], TEAMS, NOVEMBER, LATER_S)
    (charge,) = bill.charges
    assert (charge.amount, charge.at_least, charge.seen_hours) == (84_000, True, 3)
    assert "3 of 720 hours of the month were seen" in " ".join(report(bill).caveats)
    (row,) = csv.DictReader(io.StringIO(as_csv(bill)))
    assert (row["x_CoverageHours"], row["x_MonthHours"], row["x_AtLeast"]) == ("3.0", "720.0", "True")


def test_a_month_without_a_request_has_no_figure(tmp_path: Path) -> None:
    """A month without requests has neither a row nor a zero, and the report says that nothing is known."""
    folder = stored(tmp_path, moved("2026-10-31T12:00:00", "alice", produced=1))
    bill = find_charges(
        [use_of_history(folder, NOVEMBER, TeamFinder(TEAMS), "prod", LATER_S)], TEAMS, NOVEMBER, LATER_S
    )
    assert document(bill)["total"] is None
    assert document(bill)["charges"] == []
    assert "has no request of November 2026" in " ".join(report(bill).caveats)
    assert "0.00" not in html(report(bill))


def test_entities_without_a_team_or_a_price_have_usage_and_no_cost() -> None:
    """Entities without a team or a price have usage and an empty cost, and are left out of `priced`."""
    bytes_ = {
        ("payments", IN): TeamBytes(amount=2_000_000_000),
        ("etl", OUT): TeamBytes(amount=7),
        ("free", IN): TeamBytes(amount=5),
        (UNOWNED, IN): TeamBytes(amount=3),
        ("etl", IN): TeamBytes(amount=None),
    }
    bill = find_charges([use(bytes_)], TEAMS, NOVEMBER, LATER_S)
    rows = list(csv.DictReader(io.StringIO(as_csv(bill))))
    assert [(row["x_Team"], row["ConsumedQuantity"], row["BilledCost"], row["ListUnitPrice"]) for row in rows] == [
        ("payments", "2000000000.0", "0.1", "0.05"),
        ("etl", "", "", "0.02"),
        ("etl", "7.0", "", ""),
        ("free", "5.0", "", ""),
        ("__unowned__", "3.0", "", ""),
    ]
    assert [row["x_Team"] for row in csv.DictReader(io.StringIO(as_csv(bill, priced=True)))] == ["payments"]
    (table,) = report(bill).blocks
    assert isinstance(table, Rows)
    cells = {str(row[0]): str(row[5]) for row in table.rows}
    assert cells == {
        "all teams": "≥ 0.10 EUR",
        "payments": "0.10 EUR",
        "etl": "unknown",
        "free": "no price",
        "no team": "no price",
    }


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from((IN, OUT)), st.integers(0, 10**18), st.sampled_from("xy")),
        max_size=30,
    ),
    st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=8, max_size=8),
)
def test_the_sum_of_rows_is_the_total(used: list[tuple[str, QuotaType, int, str]], prices: list[float | None]) -> None:
    """Rows add up to the total to the last digit, for any prices and amounts, also in each cluster."""
    teams = [team(name, name, *prices[2 * place : 2 * place + 2]) for place, name in enumerate("abcd")]
    by_cluster: dict[str, dict[tuple[str, QuotaType], int]] = defaultdict(lambda: defaultdict(int))
    for name, kind, amount, cluster in used:
        by_cluster[cluster][name, kind] += amount
    uses = [
        use({key: TeamBytes(amount=amount) for key, amount in bytes_.items()}, cluster)
        for cluster, bytes_ in sorted(by_cluster.items())
    ]
    bill = find_charges(uses, teams, NOVEMBER, LATER_S)
    by_name = {one.name: one for one in teams}
    naive = Fraction(0)
    for bytes_ in by_cluster.values():
        for (name, kind), amount in bytes_.items():
            price = by_name[name].price_per_gb_in if kind is IN else by_name[name].price_per_gb_out
            naive += Fraction(amount, 10**9) * Fraction(repr(price or 0.0))
    rows = list(csv.DictReader(io.StringIO(as_csv(bill))))
    assert sum((Fraction(row["BilledCost"]) for row in rows if row["BilledCost"]), Fraction(0)) == naive
    whole = document(bill)
    assert Fraction(whole["total"] or 0) == naive
    assert sum(Fraction(one["total"] or 0) for one in whole["clusters"]) == naive
    for row in rows:
        if row["BilledCost"]:
            assert Fraction(row["PricingQuantity"]) * Fraction(row["ListUnitPrice"]) == Fraction(row["ListCost"])


def test_two_clusters_are_charged_apart(tmp_path: Path) -> None:
    """Each cluster has its own rows, hours and sum; a team of two clusters is not summed in a row."""
    one = stored(tmp_path / "eu", moved("2026-11-02T10:00:00", "alice", produced=10**9))
    other = stored(tmp_path / "us", moved("2026-11-02T10:00:00", "alice", produced=3 * 10**9))
    uses = [
        use_of_history(folder, NOVEMBER, TeamFinder(TEAMS), name, LATER_S)
        for folder, name in ((one, "eu"), (other, "us"))
    ]
    whole = document(find_charges(uses, TEAMS, NOVEMBER, LATER_S))
    assert [(one["cluster"], one["total"]) for one in whole["clusters"]] == [("eu", "0.05"), ("us", "0.15")]
    assert whole["total"] == "0.2"


def test_a_month_that_has_not_ended_says_so() -> None:
    """An unfinished month has figures up to now, which compare with the passed hours, as does FOCUS's period."""
    now_s = BEGIN_S + 36 * 3_600
    running = ClusterUse(
        cluster="prod", source="usage", seen_s=36 * 3_600, until_s=now_s, bytes={("payments", IN): TeamBytes(amount=1)}
    )
    bill = find_charges([running], TEAMS, NOVEMBER, now_s)
    first, second, *_ = report(bill).caveats
    assert first == "November 2026 has not ended: these are its costs up to 2026-11-02 12:00:00 UTC, not a bill."
    assert second == "Of cluster prod, 36 of 720 hours of the month were seen (100 % of those that have passed)."
    assert not bill.charges[0].at_least
    (row,) = csv.DictReader(io.StringIO(as_csv(bill)))
    assert (row["ChargePeriodEnd"], row["BillingPeriodEnd"]) == ("2026-11-02T12:00:00Z", "2026-12-01T00:00:00Z")


def lacking(cluster: str, **known: Any) -> ClusterUse:
    """Return a cluster of which the second half of November was not seen."""
    bytes_ = {("payments", IN): TeamBytes(amount=1, at_least=True)}
    return replace(use(bytes_, cluster, seen_s=(END_S - BEGIN_S) / 2), **known)


def test_lower_bounds_have_one_legend() -> None:
    """Clusters with the same and with other reasons have one legend of `≥`, and no other sentence explains it."""
    uses = [lacking("eu", bounds=["samples of 2 nodes are missing"]), lacking("us", bounds=["nodes have no log here"])]
    bill = find_charges([*uses, lacking("ap", bounds=["nodes have no log here"])], TEAMS, NOVEMBER, LATER_S)
    (legend,) = (sentence for sentence in report(bill).caveats if "≥" in sentence)
    assert legend == (
        "≥ marks lower bounds: what was used in hours that were not seen is unknown; samples of 2 nodes are missing; "
        "nodes have no log here."
    )


def test_a_total_without_an_unknown_cost_has_a_legend() -> None:
    """A total that lacks the cost of an unknown amount is a lower bound for this reason."""
    bytes_ = {("payments", IN): TeamBytes(amount=10**9), ("etl", IN): TeamBytes(amount=None)}
    bill = find_charges([use(bytes_)], TEAMS, NOVEMBER, LATER_S)
    assert "≥ marks lower bounds: a cost of an unknown amount is in no total." in report(bill).caveats


@pytest.mark.parametrize("uses", [[use({})], [lacking("eu", bytes={})], [use({("payments", IN): TeamBytes(amount=1)})]])
def test_without_lower_bounds_there_is_no_legend(uses: list[ClusterUse]) -> None:
    """A bill without a lower bound has no legend of them."""
    assert not any("≥" in sentence for sentence in report(find_charges(uses, TEAMS, NOVEMBER, LATER_S)).caveats)


def test_prices_need_one_currency() -> None:
    """Sums of two would mean nothing; without prices none is needed."""
    of_none = Team(name="a", clients=(), price_per_gb_in=1.0)
    of_dollars = Team(name="b", clients=(), price_per_gb_in=1.0, currency="USD")
    with pytest.raises(NoCurrency, match="write `currency: EUR`"):
        find_charges([], [of_none, PAYMENTS], NOVEMBER, LATER_S)
    with pytest.raises(NoCurrency, match="EUR and USD"):
        find_charges([], [of_dollars, PAYMENTS], NOVEMBER, LATER_S)
    assert find_charges([], [FREE], NOVEMBER, LATER_S).currency is None


def test_a_price_has_the_digits_of_the_file() -> None:
    """A price of 0.1 is a tenth, not the binary number next to it."""
    assert str(price_of(team("a", "a", 0.1), IN)) == "0.1"
    assert price_of(team("a", "a", 0.1), OUT) is None
    assert price_of(None, IN) is None


def test_hostile_names_break_no_form() -> None:
    """No name becomes a formula, a line or markup; JSON has it unchanged."""
    name = '=cmd()|"<script>\n\x1b[2J'
    hostile = team(name, "eve", 1.0)
    bytes_ = {(name, IN): TeamBytes(amount=10**9)}
    bill = find_charges([use(bytes_, cluster="@SUM(A1)")], [hostile], NOVEMBER, LATER_S)
    text = as_csv(bill, provider="+1")
    (row,) = csv.DictReader(io.StringIO(text))
    assert text.count("\n") == 2  # the head and the row
    assert not [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    assert json.loads(row["Tags"].removeprefix("'")) == {"team": name}
    page = html(report(bill))
    assert "<script>" not in page
    assert document(bill)["charges"][0]["team"] == name


def test_all_columns_of_focus_are_there_once() -> None:
    """The columns have each one that FOCUS 1.2 requires once; ours begin with x_."""
    mandatory = {
        "BilledCost",
        "BillingAccountId",
        "BillingAccountName",
        "BillingCurrency",
        "BillingPeriodEnd",
        "BillingPeriodStart",
        "ChargeCategory",
        "ChargeClass",
        "ChargeDescription",
        "ChargePeriodEnd",
        "ChargePeriodStart",
        "ContractedCost",
        "EffectiveCost",
        "InvoiceIssuerName",
        "ListCost",
        "PricingQuantity",
        "PricingUnit",
        "ProviderName",
        "PublisherName",
        "ServiceCategory",
        "ServiceName",
    }
    header = as_csv(find_charges([use({})], TEAMS, NOVEMBER, LATER_S)).splitlines()[0].split(",")
    assert header == [*COLUMNS, *OWN_COLUMNS]
    assert len(header) == len(set(header))
    assert mandatory <= set(header)
    assert all(column.startswith("x_") for column in OWN_COLUMNS)


def test_what_focus_demands_of_a_priced_row() -> None:
    """A priced row has a value in each column that FOCUS requires, times in UTC with a Z, and a known category."""
    bill = find_charges([use({("payments", IN): TeamBytes(amount=5 * 10**8)})], TEAMS, NOVEMBER, LATER_S)
    (row,) = csv.DictReader(io.StringIO(as_csv(bill)))
    may_be_empty = {
        "AvailabilityZone", "ChargeClass", "RegionId", "RegionName", "ResourceName", *(
            column for column in COLUMNS if column.startswith("CommitmentDiscount")
        )
    }  # fmt: skip
    assert {column for column in COLUMNS if not row[column]} == may_be_empty
    assert (row["BillingPeriodStart"], row["ChargePeriodEnd"]) == ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z")
    assert datetime.fromisoformat(row["ChargePeriodStart"]).tzinfo == UTC
    assert (row["PricingQuantity"], row["PricingUnit"], row["ConsumedUnit"]) == ("0.5", "GB", "B")
    assert (row["ServiceCategory"], row["ServiceSubcategory"]) == ("Integration", "Messaging")


def test_a_total_with_an_unknown_part_is_a_lower_bound() -> None:
    """A headline, a cluster's total and the total of all are at least so much if any part of them is unknown."""
    whole = use({("etl", IN): TeamBytes(amount=10**11)}, "eu")
    unknown = use({("payments", IN): TeamBytes(amount=3 * 10**9), ("payments", OUT): TeamBytes(amount=None)}, "us")
    bill = find_charges([whole, unknown], TEAMS, NOVEMBER, LATER_S)
    assert report(bill).headline == ["2 teams: at least 2.15 EUR."]
    answer = document(bill)
    assert (answer["total"], answer["total_at_least"], answer["total_approximate"]) == ("2.15", True, False)
    assert [(one["total"], one["total_at_least"]) for one in answer["clusters"]] == [("2.0", False), ("0.15", True)]


def test_a_cluster_of_which_nothing_was_seen_makes_the_total_a_lower_bound() -> None:
    """A cluster without a charge of which hours were not seen may cost something; its total is unknown."""
    bill = find_charges(
        [use({("etl", IN): TeamBytes(amount=10**11, approximate=True)}, "eu"), use({}, "us", 0.0)],
        TEAMS,
        NOVEMBER,
        LATER_S,
    )
    assert report(bill).headline == ["1 team: at least about 2.00 EUR."]
    answer = document(bill)
    assert [(one["total"], one["total_at_least"]) for one in answer["clusters"]] == [("2.0", False), (None, True)]
    assert [str(getattr(block, "empty", "")) for block in report(bill).blocks][1] == "Nothing was seen of this month."


def test_a_price_of_an_unknown_amount_is_not_called_missing() -> None:
    """Where each priced amount is unknown, the headline says that, and not that there is no price."""
    bill = find_charges([use({("payments", OUT): TeamBytes(amount=None)})], TEAMS, NOVEMBER, LATER_S)
    assert report(bill).headline == ["No team has a cost: how much was used is unknown."]


def test_nothing_that_was_counted_may_be_something() -> None:
    """An amount of 0 is no charge where all was seen, and a lower bound where requests are missing."""
    seen = use({("payments", IN): TeamBytes(amount=0), ("etl", IN): TeamBytes(amount=0, at_least=True)})
    bill = find_charges([seen], TEAMS, NOVEMBER, LATER_S)
    assert [(charge.team, charge.amount, charge.at_least) for charge in bill.charges] == [("etl", 0, True)]
    assert report(bill).headline == ["1 team: at least 0.00 EUR."]
    nothing = report(find_charges([use({("etl", IN): TeamBytes(amount=0)})], TEAMS, NOVEMBER, LATER_S))
    assert nothing.headline == ["No team has a cost: nothing was used in the hours that were seen."]
    assert getattr(nothing.blocks[0], "empty", "") == "Nothing was used in the hours that were seen."


def test_two_clusters_of_one_name_are_refused() -> None:
    """Charges of one name could not be told apart in any form."""
    with pytest.raises(SameName, match="usage: two clusters are named 'eu'"):
        find_charges([use({}, "eu"), use({}, "us"), use({}, "eu")], TEAMS, NOVEMBER, LATER_S)


def test_samples_that_end_before_the_month_are_not_all_of_it() -> None:
    """The hours that have passed are those of the month, however early the samples end."""
    january = Month(1970, 1)
    past = past_of(24, {Usage(): every(10, 0, 24 * 3_600)})
    whole = use_of_past(past, january, TeamFinder(TEAMS), "prod", january.span_s[1] + 86_400)
    assert (whole.seen_s / 3_600, whole.until_s) == (24, january.span_s[1])
    bill = find_charges([whole], TEAMS, january, january.span_s[1] + 86_400)
    assert [charge.at_least for charge in bill.charges] == [True]
    assert "24 of 744 hours of the month were seen (3.2 % of those that have passed)" in " ".join(report(bill).caveats)
    running = use_of_past(past, january, TeamFinder(TEAMS), "prod", 24.9 * 3_600)
    assert (running.until_s / 3_600, running.lacks(january)) == (24, False)


@pytest.mark.parametrize("rate", [float("nan"), float("inf")])
def test_a_rate_that_is_no_number_is_an_unknown_amount(rate: float) -> None:
    """Samples of NaN or infinity leave a month's bytes unknown."""
    past = past_of(24, {Usage(): every(10, 0, 24 * 3_600)}, rate)
    used = use_of_past(past, Month(1970, 1), TeamFinder(TEAMS), "prod", 24 * 3_600)
    assert [one.amount for one in used.bytes.values()] == [None]
