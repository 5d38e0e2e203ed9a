"""Numbers and names of quotas as a person reads them in a terminal."""

from quotascope.exporter.logs import one_line
from quotascope.metrics import DefaultType, Level, QuotaType, Resolution

_UNITS = {
    QuotaType.PRODUCE: "B/s",
    QuotaType.FETCH: "B/s",
    QuotaType.REQUEST: "threads",
    QuotaType.CONTROLLER_MUTATION: "mut./s",
}
_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_LEVELS = list(Level)


def usage_of_limit(
    quota_type: QuotaType, usage: float | None, limit: float | None
) -> str:
    """
    Both numbers in one unit, the larger one's.

    >>> usage_of_limit(QuotaType.PRODUCE, 2_104_000.0, 2_000_000.0)
    '2.10 / 2.00 MB/s'
    >>> usage_of_limit(QuotaType.REQUEST, 0.08, None)
    '0.08 / - threads'

    Args:
        quota_type: gives the unit: bytes/s, threads or mutations/s.
        usage: None when the broker gave none.
        limit: None when unlimited.

    """
    factor, prefix = _scale(quota_type, max(abs(usage or 0.0), limit or 0.0))
    numbers = (_number(value, factor) for value in (usage, limit))
    return f"{' / '.join(numbers)} {prefix}{_UNITS[quota_type]}"


def percent(ratio: float | None) -> str:
    """
    A ratio in percent, in at most five characters.

    >>> percent(0.984), percent(123.0), percent(None)
    ('98%', '>999%', '')
    """
    if ratio is None:
        return ""
    return f"{ratio:.0%}" if ratio < 9.995 else ">999%"  # noqa: PLR2004 - the last to round to 999%


def seconds(value: float | None) -> str:
    """
    A duration in s.

    >>> seconds(0.2), seconds(135.0), seconds(0.0), seconds(None)
    ('0.20 s', '135 s', '-', '-')
    """
    if not value:
        return "-"
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"  # noqa: PLR2004 - three digits either way


def entity_name(
    user: str | DefaultType | None, client_id: str | DefaultType | None
) -> str:
    """
    A quota entity, measured or configured; None and "" stand for a dimension that it does not have.

    >>> from quotascope.metrics import DEFAULT
    >>> entity_name("etl", "spark"), entity_name("etl", ""), entity_name(None, DEFAULT)
    ('etl / spark', 'user etl', 'client <default>')
    """
    if user and client_id:
        return f"{_name(user)} / {_name(client_id)}"
    if user:
        return f"user {_name(user)}"
    return f"client {_name(client_id or '')}"


def rule_name(resolution: Resolution | None) -> str:
    """The rule that decides: its place among Kafka's eight levels, 1 being the strongest, and its entity."""
    if resolution is None or resolution.entity is None:
        return "no rule"
    place = _LEVELS.index(resolution.level) + 1
    return f"{place} {entity_name(resolution.entity.user, resolution.entity.client_id)}"


def level_name(resolution: Resolution | None) -> str:
    """The level of the rule that decides, as the label `level` has it."""
    return (Level.NONE if resolution is None else resolution.level).value


def _name(name: str | DefaultType) -> str:
    return one_line(name) if isinstance(name, str) else "<default>"


def _number(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{value / factor:.2f}"


def _scale(quota_type: QuotaType, value: float) -> tuple[float, str]:
    if _UNITS[quota_type] != "B/s":
        return 1.0, ""
    return next((scale for scale in _SCALES if value >= scale[0]), (1.0, ""))
