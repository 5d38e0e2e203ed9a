"""Runbooks with the names of an alert in place of their examples, and commands for the rule that applies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity, QuotaType
from quotascope.quotas import bash_quoted, number_text

from ..limits import Limits
from ..names import is_cut

USER: Final = "alice"
CLIENT_ID: Final = "app1"
"""Names in the runbooks that are examples for the names of an alert."""
_FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMES: Final = re.compile(
    rf"(?P<option>--(?:user|client-id|entity-type users --entity-name|entity-type clients --entity-name)) "
    rf"(?P<name>{USER}|{CLIENT_ID})\b"
)
_ALTER: Final = re.compile(
    r"--alter --(?P<action>add|delete)-config '(?P<key>\w+)(?:=(?P<value>[0-9.e+]+))?'(?P<entity>( --entity-\S+ \S+)+)"
)
_LABEL: Final = re.compile(rf'(?P<label>user|client_id)="(?:{USER}|{CLIENT_ID})"')
_EXAMPLES: Final = re.compile(rf"`{USER}` and `{CLIENT_ID}` for the user\s+and the client-id\s+of the\s+alert,\s+")


def filled(text: str, user: str | None, client_id: str | None, limits: Limits | None) -> str:
    """
    Return a runbook in Markdown for a user and a client-id; None stands for a name that the alert lacks.

    Where the configured quotas are known, a command to set or remove a quota is for the rule that applies to them,
    since a rule that another one overrules has no effect. A command that raises a limit doubles it; instead of a
    default, it sets a limit for these names alone.
    """
    names = {"user": user or None, "client_id": client_id or None}

    def block(match: re.Match[str]) -> str:
        language, code = match.groups()
        if language == "sh":
            lines = dict.fromkeys(_command(line, names, limits) for line in code.splitlines())
            code = "".join(f"{line}\n" for line in lines if line is not None)
        else:
            code = _LABEL.sub(lambda label: _matcher(label["label"], names[label["label"]]), code)
        return f"```{language}\n{code}```"

    return _EXAMPLES.sub("", _FENCE.sub(block, text))


def _command(line: str, names: Mapping[str, str | None], limits: Limits | None) -> str | None:
    """Return a line of a shell with these names; None for a command about a name that the alert does not have."""
    if (alter := _ALTER.search(line)) is not None:
        kind = QuotaType.of_quota_key(alter["key"])
        option = None if kind is None or limits is None else _for_the_rule(alter, kind, names, limits)
        if option is not None:
            return f"{line[: alter.start()]}{option}{line[alter.end() :]}"
    missing = False

    def named(match: re.Match[str]) -> str:
        nonlocal missing
        name = names["user" if match["name"] == USER else "client_id"]
        if name is None or is_cut(name):
            # kafka-configs.sh cannot do without the name of its entity; other options can be left out
            missing |= match["option"].startswith("--entity")
            return ""
        return f"{match['option']} {bash_quoted(name)}"

    filled_line = _NAMES.sub(named, line)
    # an option that is left out leaves two blanks
    return None if missing else re.sub(r"(?<=\S)  +", " ", filled_line)


def _for_the_rule(alter: re.Match[str], kind: QuotaType, names: Mapping[str, str | None], limits: Limits) -> str | None:
    """Return the option that sets or removes the quota that applies; None where no quota applies."""
    user, client_id = names["user"] or "", names["client_id"] or ""
    rules = limits.rules.get(kind)
    # an alert without a client-id is about a user alone, whose rule applies whatever client-id is sent
    decision = None if rules is None else rules.limit(user, client_id)
    if decision is None or decision.entity is None or decision.bound is None:
        return None
    entity = decision.entity
    if any(isinstance(name, str) and is_cut(name) for name in (entity.user, entity.client_id, user, client_id)):
        return None
    if alter["action"] == "delete":
        return f"--alter --delete-config '{alter['key']}'{_options(entity)}"
    own_user = user if entity.user is DEFAULT else entity.user
    own_client_id = client_id if entity.client_id is DEFAULT else entity.client_id
    own_rule = QuotaEntity(own_user, own_client_id)
    return f"--alter --add-config '{alter['key']}={number_text(2 * decision.bound)}'{_options(own_rule)}"


def _options(entity: QuotaEntity) -> str:
    """Return the options of kafka-configs.sh that name an entity."""
    return "".join(
        f" --entity-type {kind} {_option(name)}"
        for kind, name in (("users", entity.user), ("clients", entity.client_id))
        if name is not None
    )


def _option(name: Name) -> str:
    return f"--entity-name {bash_quoted(name)}" if isinstance(name, str) else "--entity-default"


def _matcher(label: str, name: str | None) -> str:
    """Return a matcher of PromQL; an empty value matches series without the label."""
    escaped = (name or "").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{label}="{escaped}"'
