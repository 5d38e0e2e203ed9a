"""Changes of quotas as commands for Kafka's own tool, `kafka-configs.sh` (Kafka: `ConfigCommand`)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .change import RuleChange, by_entity
from .quota_set import CLIENT_ID, IP, USER, names_of, number_text

_TYPES: Final = {USER: "users", CLIENT_ID: "clients", IP: "ips"}
"""Types of entities as the tool calls them, by kind of name."""
_NAMED: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""Characters with an escape of their own in `$'…'`, and the escapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Commands to run, and changes that no command can express."""

    lines: tuple[str, ...]
    """Commands for bash."""
    left_out: tuple[str, ...] = ()
    """Sentences about the changes that are missing, with reasons."""


def kafka_configs(
    changes: Iterable[RuleChange], *, bootstrap_servers: str, command_config: str | None = None
) -> Commands:
    """
    Return one command for each entity.

    Args:
        changes: what is to be set (`--add-config`) and removed (`--delete-config`, which refuses to remove what is not
            there).
        bootstrap_servers: `host:port,…`
        command_config: the tool's file with the settings of the connection, if it needs one.

    """
    start = ["kafka-configs.sh", "--bootstrap-server", bootstrap_servers]
    if command_config is not None:
        start += ["--command-config", command_config]
    lines, left_out = [], []
    for entity, group in by_entity(changes).items():
        if any(isinstance(name, str) and "\0" in name for name in names_of(entity).values()):
            left_out.append(f"{entity}: no argument can hold a NUL")
            continue
        words = [*start]
        for kind, name in names_of(entity).items():
            words += ["--entity-type", _TYPES[kind]]
            words += ["--entity-name", name] if isinstance(name, str) else ["--entity-default"]
        words.append("--alter")
        added = [f"{change.key}={number_text(change.new)}" for change in group if change.new is not None]
        removed = [change.key for change in group if change.new is None]
        if added:
            words += ["--add-config", ",".join(added)]
        if removed:
            words += ["--delete-config", ",".join(removed)]
        lines.append(" ".join(map(bash_quoted, words)))
    return Commands(lines=tuple(lines), left_out=tuple(left_out))


def bash_quoted(word: str) -> str:
    r"""
    Return a word quoted for bash.

    Unprintable characters are escaped, so that they cannot move a cursor or break a line.

    >>> print(bash_quoted("plain"), bash_quoted("it's $HOME"), bash_quoted("a\n\x1b[2J"))
    plain 'it'"'"'s $HOME' $'a\n\x1b[2J'
    """
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(char: str) -> str:
    """Return a character as it is written in `$'…'` of bash."""
    if char in _NAMED:
        return _NAMED[char]
    if char.isprintable() and char != "!":  # an interactive bash looks for its history
        return char
    # bytes: what bash makes of \u depends on its locale
    return "".join(f"\\x{byte:02x}" for byte in char.encode())
