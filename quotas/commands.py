"""Commands of `quotascope quotas` that make a change, to be pasted into bash; without `--apply` they show it only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quotascope.metrics.kafka.entities import Name

from .alike import PRINCIPAL_TYPE
from .kafka_configs import bash_quoted
from .quota_file import DEFAULT_TEXT, quotas_yaml
from .quota_set import USER, Entity, QuotaSet, names_of, number_text

_PROGRAM = "quotascope quotas"


def set_command(entity: Entity, values: Mapping[str, float]) -> str:
    r"""
    Return the command that sets quotas of an entity. Names that the options refuse as probable mistakes come in a file.

    >>> from quotascope.metrics.kafka.entities import QuotaEntity
    >>> set_command(QuotaEntity("it's"), {"producer_byte_rate": 2000.0})
    'quotascope quotas set producer_byte_rate=2000 --user \\'it\\'"\\'"\\'s\\''
    """
    if any(map(_needs_file, names_of(entity).items())):
        return _with_file("set", QuotaSet({entity: values}))
    pairs = (f"{key}={number_text(value)}" for key, value in values.items())
    return " ".join(map(bash_quoted, (*_PROGRAM.split(), "set", *pairs, *options_of(entity))))


def remove_command(entity: Entity, keys: Collection[str]) -> str:
    """
    Return the command that removes quotas of an entity.

    >>> from quotascope.metrics.kafka.entities import QuotaEntity
    >>> remove_command(QuotaEntity("", "a b"), ["request_percentage"])
    "quotascope quotas remove request_percentage --user '' --client-id 'a b'"
    """
    if any(isinstance(name, str) and "\0" in name for name in names_of(entity).values()):
        return _with_file("remove", QuotaSet({entity: dict.fromkeys(keys, 1.0)}))
    return " ".join(map(bash_quoted, (*_PROGRAM.split(), "remove", *sorted(keys), *options_of(entity))))


def options_of(entity: Entity) -> list[str]:
    """Return the options that name an entity, as words."""
    words = []
    for kind, name in names_of(entity).items():
        words += [f"--{kind}", name] if isinstance(name, str) else [f"--default-{kind}"]
    return words


def _needs_file(named: tuple[str, Name]) -> bool:
    """Return whether no option can give a name (with its kind), or the option would refuse it as a mistake."""
    kind, name = named
    if not isinstance(name, str):
        return False
    return "\0" in name or name == DEFAULT_TEXT or (kind == USER and name.startswith(PRINCIPAL_TYPE))


def _with_file(action: str, quotas: QuotaSet) -> str:
    """Return the command that reads the quotas from its standard input: YAML has an escape for every character."""
    lines = quotas_yaml(quotas).splitlines()
    return f"printf '%s\\n' {' '.join(map(bash_quoted, lines))} | {_PROGRAM} {action} --file -"
