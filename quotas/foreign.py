"""Files of other tools with quotas in them: each is refused by the name of its format, with a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from .yaml_file import Located

INSTEAD: Final = (
    "write its quotas as `quotas:` with `user`, `client-id` or both (documentation: Quotas on the command line)"
)
_OF_CLUSTER: Final = "`quotascope quotas export` writes the quotas of a cluster for this command"

_TEXTS: Final = (
    (
        re.compile(r"\A\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE),
        "a web page, perhaps of a login: check where the file was loaded from",
    ),
    (
        re.compile(r"\{\{-?\s*(?:[.$]\w|(?:range|if|with|include|template|define|end|toYaml|required)\b)"),
        "a template of Helm: render it first, as `helm template` does",
    ),
    (
        re.compile(r"^\s*(?:Quota configs|Configs|Dynamic configs) for .+ are", re.MULTILINE),
        f"the output of kafka-configs.sh --describe, in which names are not escaped; {_OF_CLUSTER}",
    ),
    (
        re.compile(r"^\s*(?:\S*/)?kafka-configs(?:\.sh|\.bat)?\s+--", re.MULTILINE),
        "commands of kafka-configs.sh: run them with bash",
    ),
    (
        re.compile(r'^\s*(?:resource|variable|module|provider)\s+"[^"]*"(?:\s+"[^"]*")?\s*\{', re.MULTILINE),
        f"a configuration of Terraform; {INSTEAD}",
    ),
)
"""Patterns of texts that are hardly YAML, and their descriptions."""
_GROUPS: Final = (
    ("jikkou.io", "Jikkou"),
    ("kafka.aiven.io", "Jikkou for Aiven"),
    ("aiven.io", "Aiven's operator"),
    ("platform.confluent.io", "Confluent for Kubernetes"),
    ("banzaicloud.io", "Koperator"),
    ("cluster.redpanda.com", "Redpanda's operator"),
    ("kafka/", "Conduktor"),
    ("gateway/", "Conduktor Gateway"),
    ("console/", "Conduktor"),
    ("self-serve/", "Conduktor"),
)
"""Beginnings or ends of an apiVersion's group, and the tools whose resources these are."""
_Keys = Mapping[str, Located]


def format_of_text(text: str) -> str | None:
    """Describe a text that is no YAML, with a remedy; None if the format is not certain."""
    return next((description for pattern, description in _TEXTS if pattern.search(text)), None)


def format_of(document: Located) -> str | None:
    """Describe the format of a document, with a remedy; None if it is not certain."""
    content = document.mapping
    if content is not None:
        return next((description for has, description in _MAPPINGS if has(content)), None)
    first = document.items[0] if document.items else None
    if first is None or first.mapping is None:
        return None
    return next((description for has, description in _LISTS if has(first.mapping)), None)


def of_manifest(kind: str, version: str) -> str:
    """Describe a resource of Kubernetes, or one in its form, that is no KafkaUser of Strimzi."""
    group = version.rpartition("/")[0]
    owner = next((name for part, name in _GROUPS if version.startswith(part) or group.endswith(part)), "")
    return f"{kind} ({f'{owner}, ' if owner else ''}{version})"


def _below(content: _Keys, *keys: str) -> Located | None:
    """Return the item that some keys lead to, one below the other; None if there is none."""
    item: Located | None = None
    for key in keys:
        item = content.get(key)
        content = {} if item is None or item.mapping is None else item.mapping
    return item


def _has(*keys: str) -> Callable[[_Keys], bool]:
    """Return a function that returns whether a mapping has all of some keys."""
    return lambda content: {*keys} <= content.keys()


def _is_rpk(content: _Keys) -> bool:
    """Return whether a mapping has quotas in the form of rpk, whose rules have the key `entity`."""
    quotas = content.get("quotas")
    return quotas is not None and any(
        rule.mapping is not None and "entity" in rule.mapping for rule in quotas.items or ()
    )


_ANSIBLE: Final = f"a playbook, role or inventory of Ansible; {INSTEAD}"
_MAPPINGS: Final[tuple[tuple[Callable[[_Keys], bool], str], ...]] = (
    (
        lambda content: (
            "context" in content and ("projects" in content or _below(content, "platform", "kafka") is not None)
        ),
        f"a topology of JulieOps; {INSTEAD}, a principal without User:",
    ),
    (
        _is_rpk,
        f"quotas in the form of Redpanda's rpk; {INSTEAD}",
    ),
    (_has("terraform_version"), f"a state or plan of Terraform; {INSTEAD}"),
    (
        lambda content: _below(content, "resource", "kafka_quota") is not None,
        f"a configuration of Terraform; {INSTEAD}",
    ),
    (
        lambda content: any(re.fullmatch(r"(?:[\w.]+\.)?kafka_(?:quotas?|lib)", key) for key in content),
        _ANSIBLE,
    ),
    (
        lambda content: "services" in content and ("topics" in content or "users" in content or "settings" in content),
        f"a state of kafka-gitops; {INSTEAD}",
    ),
    (
        _has("candidates"),
        "candidates for `quotascope whatif`: give one of them as a file with nothing but `quotas`",
    ),
)
_LISTS: Final[tuple[tuple[Callable[[_Keys], bool], str], ...]] = (
    (
        lambda content: (
            "hosts" in content
            or "tasks" in content
            or any(re.fullmatch(r"(?:[\w.]+\.)?kafka_(?:quotas?|lib)", key) for key in content)
        ),
        _ANSIBLE,
    ),
    (_has("entity", "rule", "level", "hits"), f"the output of `quotascope quotas list --json`; {_OF_CLUSTER}"),
    (_has("entity", "key", "old", "new"), f"the output of `quotascope quotas diff --json`; {_OF_CLUSTER}"),
    (_has("user", "producer_byte_rate"), "a list of quotas without its key: put `quotas:` before it"),
)
