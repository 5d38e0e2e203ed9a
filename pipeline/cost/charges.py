"""
Charges of teams for a month: the bytes that a team used, and their cost.

Money is exact. Bytes are whole numbers, a GB is 10^9 bytes, a price is the decimal number of the file, and a cost is
their product with all digits. So the sum of rows is the total, in whatever order they are added up. Only reports for
people round it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Final

from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED, Team
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.words import shown

from ..errors import PipelineError
from .month import Month
from .usage import BYTES, ClusterUse

GB: Final = 10**9
"""Bytes of a GB, for which prices are."""
DIGITS: Final = 1_000
"""Number of digits for sums and products. No result has more, as prices are from 10^-324 to 10^308."""


class NoCurrency(PipelineError):
    """Teams have prices, and their file names no currency."""


class SameName(PipelineError):
    """Two clusters have one name, so that their charges could not be told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Bytes of one direction that a team moved in a month on a cluster, and their cost."""

    cluster: str
    team: str
    """Label of the team: its name, `UNOWNED` or `UNDECIDED`."""
    contact: str | None
    kind: QuotaType
    amount: int | None
    """Bytes; None if they are unknown."""
    price: Decimal | None
    """Price of a GB; None for a team without one."""
    at_least: bool
    """True if the amount is a lower bound: a part of the time was not seen, or requests are missing."""
    approximate: bool
    """True if the amount was estimated from samples."""
    seen_hours: float
    """Hours of the month for which the node with the fewest samples or requests was seen."""

    @property
    def gigabytes(self) -> Decimal | None:
        """Amount in GB, exactly."""
        return None if self.amount is None else Decimal(self.amount).scaleb(-9)

    @property
    def cost(self) -> Decimal | None:
        """Amount in GB times price, exactly; None without a price or an amount."""
        if self.gigabytes is None or self.price is None:
            return None
        with localcontext(prec=DIGITS):
            return self.gigabytes * self.price


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The charges of a month, by cluster and then in the order of the teams."""

    month: Month
    now_s: float
    """Time at which the bill was made, a Unix time in seconds."""
    uses: Sequence[ClusterUse]
    charges: Sequence[Charge]
    currency: str | None
    """Currency of all prices, by ISO 4217; None if no team has a price."""

    @property
    def ended(self) -> bool:
        """True if the month has ended."""
        return self.now_s >= self.month.span_s[1]

    def total(self, charges: Iterable[Charge] | None = None) -> Decimal | None:
        """Return the exact sum of the costs of some charges, all by default; None if none has a cost."""
        costs = [charge.cost for charge in (self.charges if charges is None else charges) if charge.cost is not None]
        with localcontext(prec=DIGITS):
            return sum(costs, Decimal(0)) if costs else None

    def charges_of(self, use: ClusterUse) -> list[Charge]:
        """Return the charges of a cluster."""
        return [charge for charge in self.charges if charge.cluster == use.cluster]

    def is_lower_bound(self, uses: Iterable[ClusterUse] | None = None) -> bool:
        """
        Return whether the total of some clusters, all by default, is a lower bound.

        It is a lower bound if a part of a cluster's month was not seen, or the amount of a charge with a price is
        unknown or a lower bound.
        """
        clusters = self.uses if uses is None else uses
        return any(use.lacks(self.month) or has_lower_bound(self.charges_of(use)) for use in clusters)

    def is_approximate(self, uses: Iterable[ClusterUse] | None = None) -> bool:
        """Return whether the total of some clusters, all by default, has a cost that was estimated from samples."""
        clusters = self.uses if uses is None else uses
        return any(has_estimate(self.charges_of(use)) for use in clusters)


def has_lower_bound(charges: Iterable[Charge]) -> bool:
    """Return whether the amount of any charge with a price is a lower bound or unknown."""
    return any(charge.at_least or charge.amount is None for charge in charges if charge.price is not None)


def has_estimate(charges: Iterable[Charge]) -> bool:
    """Return whether the cost of any charge was estimated from samples."""
    return any(charge.approximate for charge in charges if charge.cost is not None)


def price_of(team: Team | None, kind: QuotaType) -> Decimal | None:
    """
    Return a team's price of a GB that its clients produced or fetched, with the digits of the file; None without one.

    >>> price_of(Team(name="a", clients=(), price_per_gb_in=0.05), QuotaType.PRODUCE)
    Decimal('0.05')
    """
    if team is None:
        return None
    price = team.price_per_gb_in if kind is QuotaType.PRODUCE else team.price_per_gb_out
    return None if price is None else Decimal(repr(price))


def find_charges(uses: Sequence[ClusterUse], teams: Sequence[Team], month: Month, now_s: float) -> Bill:
    """
    Return the bill of all teams for a month.

    A team has a charge for each direction in which it moved bytes on a cluster, or may have. Entities without a team
    have charges of their own, without a price.

    Args:
        uses: bytes of the clusters.
        teams: teams, in the order of the charges.
        month: month of the bill.
        now_s: present time, a Unix time in seconds.

    Raises:
        NoCurrency: a team has a price without a currency, or the prices are in several currencies.
        SameName: two clusters have one name.

    """
    _refuse_same_names(uses)
    currency = _currency_of(teams)
    team_by_name = {team.name: team for team in teams}
    # exporters may have other teams than the file
    other_labels = {label for use in uses for label, _ in use.bytes} - {*team_by_name, UNOWNED, UNDECIDED}
    labels = (*team_by_name, *sorted(other_labels), UNOWNED, UNDECIDED)
    charges = []
    for use in uses:
        for label in labels:
            for kind in BYTES:
                used_bytes = use.bytes.get((label, kind))
                if used_bytes is None:
                    continue
                at_least = used_bytes.at_least or use.lacks(month)
                if used_bytes.amount == 0 and not at_least:
                    continue
                team = team_by_name.get(label)
                charges.append(
                    Charge(
                        cluster=use.cluster,
                        team=label,
                        contact=None if team is None else team.contact,
                        kind=kind,
                        amount=used_bytes.amount,
                        price=price_of(team, kind),
                        at_least=at_least,
                        approximate=used_bytes.approximate,
                        seen_hours=use.seen_s / 3_600,
                    )
                )
    return Bill(month=month, now_s=now_s, uses=uses, charges=charges, currency=currency)


def _refuse_same_names(uses: Sequence[ClusterUse]) -> None:
    """Raise `SameName` if two clusters have one name."""
    names = [use.cluster for use in uses]
    for use in uses:
        if names.count(use.cluster) > 1:
            raise SameName(
                f"{shown(use.source, 200)}: two clusters are named {use.cluster[:60]!r}, which their charges could not "
                "tell apart: give another --cluster-name, which names a history, or the cluster whose series have no "
                "label `cluster`"
            )


def _currency_of(teams: Sequence[Team]) -> str | None:
    """Return the currency of all prices, None if no team has a price. Raises `NoCurrency`."""
    priced = [team for team in teams if any(price_of(team, kind) is not None for kind in BYTES)]
    currencies = sorted({team.currency for team in priced if team.currency is not None})
    if any(team.currency is None for team in priced):
        raise NoCurrency("the teams have prices in no currency: write `currency: EUR` beside `teams` in their file")
    if len(currencies) > 1:
        raise NoCurrency(f"the teams have prices in {' and '.join(currencies)}, which have no sum: write one currency")
    return currencies[0] if currencies else None
