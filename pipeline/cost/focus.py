"""
Charges as CSV with the columns of FOCUS 1.2, the FinOps Open Cost and Usage Specification (https://focus.finops.org).

The file has all mandatory columns of 1.2, and also the mandatory columns of 1.0 that 1.2 made conditional, so that
tools for both can read it. Names of our own columns begin with `x_`, as the specification demands.

The specification allows no empty cost. Here a cost is empty if the price or the amount is unknown, because an unknown
cost is not 0; `priced` leaves such rows out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.report import csv_of
from quotascope.quotas.team_finder import WORDS

from .charges import Bill, Charge

VERSION: Final = "1.2"
"""Version of FOCUS that has these columns."""
COLUMNS: Final = (
    "AvailabilityZone",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
)
"""Columns of FOCUS, in its order."""
OWN_COLUMNS: Final = ("x_Approximate", "x_AtLeast", "x_Contact", "x_CoverageHours", "x_MonthHours", "x_Team")
"""Our own columns."""
_SKUS: Final = {
    QuotaType.PRODUCE: ("kafka-produce", "Bytes produced", "Bytes that clients of the team produced"),
    QuotaType.FETCH: ("kafka-fetch", "Bytes fetched", "Bytes that clients of the team fetched"),
}
"""Id, meter and description by direction."""


def as_csv(bill: Bill, *, provider: str = "Kafka", priced: bool = False) -> str:
    """
    Return CSV with a row for each charge.

    Args:
        bill: bill.
        provider: name of the provider, who runs the clusters and sends the bill.
        priced: whether to leave out rows without a cost.

    """
    charges = [charge for charge in bill.charges if not priced or charge.cost is not None]
    return csv_of((*COLUMNS, *OWN_COLUMNS), _rows(bill, charges, provider))


def _rows(bill: Bill, charges: list[Charge], provider: str) -> Iterator[dict[str, Any]]:
    """Yield the charges by the names of the columns."""
    begin, end = map(_time, bill.month.span_s)
    ends = {use.cluster: _time(use.until_s) for use in bill.uses}
    for charge in charges:
        sku, meter, description = _SKUS[charge.kind]
        cost, price = decimal(charge.cost), decimal(charge.price)
        yield {
            "BilledCost": cost,
            "BillingAccountId": charge.cluster,
            "BillingAccountName": charge.cluster,
            "BillingCurrency": bill.currency,
            "BillingPeriodEnd": end,
            "BillingPeriodStart": begin,
            "ChargeCategory": "Usage",
            "ChargeDescription": description,
            "ChargeFrequency": "Usage-Based",
            "ChargePeriodEnd": ends[charge.cluster],
            "ChargePeriodStart": begin,
            "ConsumedQuantity": decimal(None if charge.amount is None else Decimal(charge.amount)),
            "ConsumedUnit": None if charge.amount is None else "B",
            "ContractedCost": cost,
            "ContractedUnitPrice": price,
            "EffectiveCost": cost,
            "InvoiceIssuerName": provider,
            "ListCost": cost,
            "ListUnitPrice": price,
            "PricingCategory": None if price is None else "Standard",
            "PricingQuantity": decimal(charge.gigabytes),
            "PricingUnit": None if charge.amount is None else "GB",
            "ProviderName": provider,
            "PublisherName": provider,
            "ResourceId": charge.cluster,
            "ResourceType": "Kafka cluster",
            "ServiceCategory": "Integration",
            "ServiceName": "Apache Kafka",
            "ServiceSubcategory": "Messaging",
            "SkuId": sku,
            "SkuMeter": meter,
            "SkuPriceId": None if price is None else f"{sku}/{charge.team}",
            "SubAccountId": charge.team,
            "SubAccountName": WORDS.get(charge.team, charge.team),
            "Tags": json.dumps({"team": charge.team}),
            "x_Approximate": charge.approximate,
            "x_AtLeast": charge.at_least,
            "x_Contact": charge.contact,
            "x_CoverageHours": round(charge.seen_hours, 4),
            "x_MonthHours": bill.month.hours,
            "x_Team": charge.team,
        }


def decimal(value: Decimal | None) -> str | None:
    """
    Return a number in the format of FOCUS, with all digits and a decimal point; None for None.

    >>> decimal(Decimal("1E-7")), decimal(Decimal("12")), decimal(Decimal("2.50"))
    ('0.0000001', '12.0', '2.5')
    """
    if value is None:
        return None
    whole, _, decimals = format(value, "f").partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"


def _time(unix_s: float) -> str:
    """Return a Unix time in the format of FOCUS, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
