"""
Charges: what each team used in a month, times its price.

Money is exact: bytes are whole, a GB is 10^9 bytes, a price is the decimal number of the file, and a cost is their
product with all its digits. So the sum of rows is the total, however it is added up. Only what people read is rounded.
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
"""Bytes of a GB, as prices count."""
DIGITS: Final = 1_000
"""Digits of sums and products: more than any result has, as prices are from 10^-324 to 10^308."""


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
    """Bytes; None where it is unknown how many."""
    price: Decimal | None
    """Price of a GB; None for a team without one."""
    at_least: bool
    """True if a part of the time that has passed was not seen, or requests of it are missing: cost is a lower bound."""
    approximate: bool
    """True if samples stand for what was between them."""
    seen_hours: float
    """Hours of the month that were seen, of the node that was seen least."""

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
    """The charges of a month, by cluster, in the order of the teams."""

    month: Month
    now_s: float
    """Time at which the bill was made, a Unix time in seconds."""
    uses: Sequence[ClusterUse]
    charges: Sequence[Charge]
    currency: str | None
    """By ISO 4217; None if no team has a price."""

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

    def is_least(self, uses: Iterable[ClusterUse] | None = None) -> bool:
        """
        Return whether the total of some clusters, all by default, is a lower bound.

        It is one if a part of a cluster was not seen, or how much was used at a price is unknown.
        """
        return any(
            use.lacks(self.month) or lower_bound(self.charges_of(use)) for use in (self.uses if uses is None else uses)
        )

    def is_approximate(self, uses: Iterable[ClusterUse] | None = None) -> bool:
        """Return whether the total of some clusters, all by default, has a cost for which samples stand."""
        return any(approximate(self.charges_of(use)) for use in (self.uses if uses is None else uses))


def lower_bound(charges: Iterable[Charge]) -> bool:
    """Return whether the sum of the costs of some charges is a lower bound: one is, or its amount is unknown."""
    return any(charge.at_least or charge.amount is None for charge in charges if charge.price is not None)


def approximate(charges: Iterable[Charge]) -> bool:
    """Return whether samples stand for a part of the costs of some charges."""
    return any(charge.approximate for charge in charges if charge.cost is not None)


def price_of(team: Team | None, kind: QuotaType) -> Decimal | None:
    """
    Return the price of a GB that a team's clients produced or fetched, with the digits of the file; None without one.

    >>> price_of(Team(name="a", clients=(), price_per_gb_in=0.05), QuotaType.PRODUCE)
    Decimal('0.05')
    """
    if team is None:
        return None
    price = team.price_per_gb_in if kind is QuotaType.PRODUCE else team.price_per_gb_out
    return None if price is None else Decimal(repr(price))


def find_charges(uses: Sequence[ClusterUse], teams: Sequence[Team], month: Month, now_s: float) -> Bill:
    """
    Return what teams owe for a month.

    A team has a charge of each direction that it used on a cluster, or may have used; entities without a team are
    charges of their own, without a price.

    Args:
        uses: the bytes of the clusters.
        teams: the teams, in the order of the charges.
        month: the month.
        now_s: the present, a Unix time in seconds.

    Raises:
        NoCurrency: a team has a price without a currency.
        SameName: two clusters have one name.

    """
    names = [use.cluster for use in uses]
    twice = next((use for use in uses if names.count(use.cluster) > 1), None)
    if twice is not None:
        raise SameName(
            f"{shown(twice.source, 200)}: two clusters are named {twice.cluster[:60]!r}, which their charges could not "
            "tell apart: give another --cluster-name, which names a history, or the cluster whose series have no label "
            "`cluster`"
        )
    priced = [team for team in teams if price_of(team, BYTES[0]) is not None or price_of(team, BYTES[1]) is not None]
    currencies = sorted({team.currency for team in priced if team.currency is not None})
    if any(team.currency is None for team in priced):
        raise NoCurrency("the teams have prices in no currency: write `currency: EUR` beside `teams` in their file")
    if len(currencies) > 1:
        raise NoCurrency(f"the teams have prices in {' and '.join(currencies)}, which have no sum: write one currency")
    by_name = {team.name: team for team in teams}
    other_labels = {label for use in uses for label, _ in use.bytes} - {*by_name, UNOWNED, UNDECIDED}
    labels = (*by_name, *sorted(other_labels), UNOWNED, UNDECIDED)  # exporters may have other teams
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
                team = by_name.get(label)
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
    return Bill(month=month, now_s=now_s, uses=uses, charges=charges, currency=(*currencies, None)[0])
