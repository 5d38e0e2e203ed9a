"""
The nodes in the series of a Prometheus server: which series are of interest, whose they are, and each node's page.

A page is the text that the node's agent answered at its last scrape, as far as it is of interest: Prometheus keeps
names, labels and numbers as they were, and adds the labels of the target.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, TypeAlias

from ..errors import SourceUnreadable
from ..rules import START_TIME
from ..untrusted import shown
from .dialects import DIALECTS, MANGLED_NAME, own_labels
from .prometheus_api import Labels, Series
from .spellings import APP_INFO, Role, is_node_label, is_scrape_label, prefix_of, quota_name, roles_of, squeezed

NAME: Final = "__name__"
EXPORTER_MARKS: Final = frozenset(["quotascope_build_info", "quotascope_source_up", "quotascope_entities"])
"""Families that only an exporter of ours has: its series are no broker's own word."""
MOST_NAMES: Final = 2_000
_MOST_MANGLED: Final = 5
"""Names with a client in them: some suffice to say so."""
_PREFIXES: Final = tuple(
    dict.fromkeys(
        prefix.rstrip("{ ")
        for dialect in DIALECTS
        for prefix in (*dialect.prefixes, *dialect.marks)
        if not prefix.startswith("#")
    )
)
_MATCHED_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"')
_JMX: Final = "jmx_"
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
"""A name with a colon is that of a recording rule."""
_ONE_CLUSTER: Final = frozenset(["job", "env", "environment", "region", "dc", "datacenter", "stage", "site"])
"""Labels, without case and separators, that have the same value for all nodes of a cluster."""
NODE_ID_LABEL: Final = "node_id"
"""The label of a target that has the node's id, as in the files of ``file_sd``."""
_EXPORTED: Final = "exported_"
"""Prefix by which Prometheus renames a label of the agent that the target has as well."""
_ROLES: Final = {Role.TYPE: 0, Role.USER: 1, Role.CLIENT_ID: 2}
"""The order of labels in the name of an MBean, which Prometheus does not keep."""


def wanted_names(names: Iterable[str]) -> list[str]:
    """
    Return the names of metrics that the text reader understands, and the names that identify a program.

    Raises ``SourceUnreadable`` when there are too many.
    """
    plain = [name for name in names if _PLAIN_NAME.fullmatch(name)]
    certain = {name for name in plain if _is_certain(name)}
    prefixes = {prefix for name in certain if (prefix := prefix_of(name))}
    wanted: list[str] = []
    mangled = 0
    for name in plain:
        if MANGLED_NAME.match(f"\n{name}"):
            mangled += 1
            if mangled > _MOST_MANGLED:
                continue
        # names of our exporters, of nodes, of jmx_exporter itself, of nodes behind a prefix, and similar ones
        if (
            name in EXPORTER_MARKS
            or name in certain
            or name.startswith(_JMX)
            or any(name.startswith(prefix) and _is_known(name.removeprefix(prefix)) for prefix in prefixes)
            or (quota_name(name) is not None and any(word in name.lower() for word in ("kafka", "quota")))
        ):
            wanted.append(name)
    if len(wanted) > MOST_NAMES:
        raise SourceUnreadable(
            f"it has {len(wanted):,} names of metrics that may be of Kafka's quotas, such as {shown(wanted[-1])}: "
            "set selector to the job of the brokers' agents"
        )
    return wanted


def _is_certain(name: str) -> bool:
    """Return whether only nodes of Kafka and quotascope exporters have a metric with this name."""
    quota = quota_name(name)
    return _is_known(name) or (quota is not None and quota.certain)


def _is_known(name: str) -> bool:
    """Return whether a dialect, or the rules of quotascope, names metrics like this."""
    return name.startswith(_PREFIXES) or bool(own_labels(name))


def query_of(names: Iterable[str], selector: str) -> str:
    """
    Return the selector of all series with these names.

    >>> query_of(["a", "b"], 'job="kafka"')
    '{__name__=~"a|b",job="kafka"}'
    """
    matchers = f'{NAME}=~"{"|".join(names)}"'
    return f"{{{matchers},{selector}}}" if selector else f"{{{matchers}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeTimes:
    """The scrapes of one target in the last minutes."""

    last: float
    """Unix time in seconds, by the clock of Prometheus."""
    interval_seconds: float | None
    """None where only one scrape is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeries:
    """The series of one node at one time, as one Prometheus server has them."""

    instance: str
    series: Sequence[Series]
    scrapes: ScrapeTimes | None = None
    """The scrapes of its target; None where they are not known."""


Replica: TypeAlias = tuple[tuple[str, str], ...]
"""The labels that tell one Prometheus server from another that scrapes the same agents."""
Groups: TypeAlias = Mapping[str, Mapping[Replica, Sequence[Series]]]
"""Series by node and Prometheus server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The labels that tell the nodes of a server's series apart."""

    instance_label: str = "instance"
    replica_labels: tuple[str, ...] = ()

    def groups(self, series: Iterable[Series]) -> Groups:
        """
        Return the series by node and server, without series of exporters of ours and of programs that are not nodes.

        Raises ``SourceUnreadable`` for a series without the label that tells nodes apart.
        """
        groups: dict[str, dict[Replica, list[Series]]] = defaultdict(lambda: defaultdict(list))
        exporters: set[str] = set()
        nodes: set[str] = set()  # and exporters, which have some metrics of nodes
        for one in series:
            instance, name = one.labels.get(self.instance_label, ""), one.labels.get(NAME, "")
            if name in EXPORTER_MARKS:
                exporters.add(instance)
            elif instance not in nodes and _is_certain(name):
                nodes.add(instance)
            groups[instance][self.replica_of(one.labels)].append(one)
        nodes -= exporters
        if "" in nodes:
            example = next(iter(groups[""].values()))[0]
            raise SourceUnreadable(
                f"the series {_text(example.labels)} has no label {shown(self.instance_label)}, which tells nodes "
                "apart: set instance_label, or a selector that leaves it out"
            )
        return {instance: groups[instance] for instance in groups if instance in nodes}

    def replica_of(self, labels: Labels) -> Replica:
        """Return the labels of a series that belong to its Prometheus server."""
        return tuple((label, labels[label]) for label in self.replica_labels if label in labels)

    def newest(self, groups: Groups, beats: Iterable[Series]) -> list[NodeSeries]:
        """
        Return the series of each node, from the server that scraped it last.

        ``beats`` are samples of the last minutes of one metric of each node, by which the times of scrapes are known.
        """
        times: dict[tuple[str, Replica], set[float]] = defaultdict(set)
        for beat in beats:
            key = beat.labels.get(self.instance_label, ""), self.replica_of(beat.labels)
            times[key].update(time for time, _ in beat.samples)
        nodes: list[NodeSeries] = []
        for instance, replicas in groups.items():
            last_scrapes = [(max(times[instance, replica], default=0.0), replica) for replica in replicas]
            last_scrape, replica = max(last_scrapes)  # 0 if the times are unknown
            scrapes = _scrapes(times[instance, replica]) if last_scrape else None
            nodes.append(NodeSeries(instance=instance, series=replicas[replica], scrapes=scrapes))
        return nodes

    def own_labels_of(self, node: NodeSeries) -> set[str]:
        """Return the labels of a node's series that Prometheus added: of the target, and of the server."""
        added = {self.instance_label, "job", *self.replica_labels}
        if len({one.labels.get(NAME) for one in node.series}) > 1:  # one metric alone may have a label of its own
            common = set.intersection(*({*one.labels.items()} for one in node.series))
            added.update(label for label, _ in common if is_scrape_label(label))
        return added


def beat_names(groups: Groups) -> list[str]:
    """Return metrics whose samples give the times of scrapes, at least one for each node, with few series in all."""
    names: set[str] = set()
    for replicas in groups.values():
        counts = Counter(one.labels.get(NAME, "") for series in replicas.values() for one in series)
        if names.isdisjoint(counts):  # no metric that was chosen for another node
            start_names = [name for name in counts if _is_start(name)]
            fewest_series = min(counts, key=lambda name: (counts[name], name))
            names.add(start_names[0] if start_names else fewest_series)
    return sorted(names)


def refuse_clusters(nodes: Iterable[NodeSeries], selector: str, instance_label: str) -> None:
    """
    Raise ``SourceUnreadable`` for nodes that differ in a label that all nodes of one cluster share.

    A missing label differs from a present one. Nodes may have the same instance. Labels in the selector are not
    compared.
    """
    labels_in_selector = {match[1] for match in _MATCHED_LABEL.finditer(selector)}
    first: dict[str, tuple[str, str]] = {}  # value and node, by label
    labels_of_nodes = [
        (node.instance or f"a target without {instance_label}", _cluster_labels(node, instance_label)) for node in nodes
    ]
    all_labels = {label for _, labels in labels_of_nodes for label in labels} - labels_in_selector
    # labels of clusters come first, since they say most about the difference
    for label in sorted(all_labels, key=lambda label: ("cluster" not in squeezed(label), label)):
        for instance, labels in labels_of_nodes:
            for value in sorted(labels.get(label, {""})):
                earlier_value, earlier_instance = first.setdefault(label, (value, instance))
                if value != earlier_value:
                    raise SourceUnreadable(
                        f"it has series of several clusters or jobs: {shown(earlier_instance)} has {shown(label)}="
                        f"{shown(earlier_value)!r}, {shown(instance)} {shown(value)!r}. Name those of one cluster in "
                        f'selector, such as {{{shown(label)}="{shown(earlier_value or value)}"}}; '
                        f'where both are of one, {{{shown(label)}=~"{shown(earlier_value)}|{shown(value)}"}}'
                    )


def _cluster_labels(node: NodeSeries, instance_label: str) -> dict[str, set[str]]:
    """Return the values of labels of clusters; an empty one if a series lacks a label of others of its metric."""
    labels_by_name: dict[str, list[Labels]] = defaultdict(list)
    for one in node.series:
        labels_by_name[one.labels.get(NAME, "")].append(one.labels)
    values: dict[str, set[str]] = defaultdict(set)
    for labels_of_series in labels_by_name.values():
        for label in set[str]().union(*labels_of_series):
            if label != instance_label and _is_of_cluster(label):
                values[label].update(labels.get(label, "") for labels in labels_of_series)
    return values


def _is_of_cluster(label: str) -> bool:
    """Return whether a label usually has the same value for all nodes of a cluster."""
    text = squeezed(label)
    is_shared = "cluster" in text or text.endswith(("namespace", "environment")) or text in _ONE_CLUSTER
    return is_shared and is_scrape_label(label) and not is_node_label(label)


def labelled_id(series: Iterable[Series]) -> int | None:
    """Return the id in a label of a node's target; None if its series have no such label, or several ids."""
    values = {one.labels.get(NODE_ID_LABEL, "") for one in series}
    value = values.pop() if len(values) == 1 else ""
    is_id = value.isascii() and value.isdecimal() and len(value) <= len(str(2**31))  # Kafka's ids have 32 bits
    return int(value) if is_id else None


def starts_of(node: NodeSeries) -> list[Series]:
    """Return the series that have the node's id in a label."""
    return [one for one in node.series if _is_start(one.labels.get(NAME, ""))]


def labels_of_duplicates(node: NodeSeries) -> list[str]:
    """
    Return the labels that tell two copies of a series of one node apart; empty if there are no copies.

    Copies differ only in labels of the target or of the Prometheus server.
    """
    first_labels: dict[str, Labels] = {}  # by the metric's name
    for one in starts_of(node):
        first = first_labels.setdefault(one.labels.get(NAME, ""), one.labels)
        differing = sorted(
            label for label in {*first, *one.labels} if first.get(label, "") != one.labels.get(label, "")
        )
        if differing and all(map(is_scrape_label, differing)):
            return differing
    return []


def page_of_node(node: NodeSeries, grouping: Grouping, comments: Mapping[str, Sequence[str]]) -> bytes:
    """
    Return the page of a node.

    ``comments`` are the lines about a metric's type and meaning, by its name.
    """
    added = grouping.own_labels_of(node)
    lines: dict[str, list[str]] = defaultdict(list)
    for one in node.series:
        name = one.labels.get(NAME, "")
        if one.samples and name:
            labels = _as_the_agent_wrote(one.labels, added)
            text = ",".join([f'{label}="{_escaped(value)}"' for label, value in labels.items()])
            number = one.samples[-1][1]
            lines[name].append(f"{name}{{{text}}} {number}" if text else f"{name} {number}")
    page: list[str] = []
    for name, texts in lines.items():
        page += [*comments.get(name, ()), *texts]
    return "".join([f"{line}\n" for line in page]).encode(errors="replace")


def comments_of(metadata: Mapping[str, Any], names: Iterable[str]) -> dict[str, list[str]]:
    """
    Return the comments of these metrics as agents write them.

    A metric to which agents give different types has no comments: the answer does not say which agent gave which.
    """
    comments: dict[str, list[str]] = {}
    for name in names:
        entries = metadata.get(name)
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            continue
        types = {entry.get("type") for entry in entries}
        kind = types.pop() if len(types) == 1 else None
        texts = {help_text for entry in entries if isinstance(help_text := entry.get("help"), str)}
        if isinstance(kind, str) and kind.isalpha():
            help_text = min(texts, default="")
            comments[name] = [
                *([f"# HELP {name} {_escaped(help_text)}"] if help_text else []),
                f"# TYPE {name} {kind}",
            ]
    return comments


def _is_start(name: str) -> bool:
    """Return whether a metric is the start of a node, which has its id in a label."""
    if name == START_TIME.name:
        return True
    quota = quota_name(name)
    return quota is not None and quota.type == APP_INFO and quota.attribute == "start-time-ms"


def _scrapes(times: Iterable[float]) -> ScrapeTimes:
    """Return the last of some times of scrapes, and the usual interval between them."""
    in_order = sorted(times)
    intervals = [later - earlier for earlier, later in pairwise(in_order)]
    return ScrapeTimes(last=in_order[-1], interval_seconds=median(intervals) if intervals else None)


def _as_the_agent_wrote(labels: Labels, added: Collection[str]) -> dict[str, str]:
    """
    Return the labels of a series as the agent wrote them.

    They come without Prometheus's own; the parts of an MBean's name are in its order.
    """
    labels_of_agent: dict[str, str] = {}
    for label, value in labels.items():
        original_label = label.removeprefix(_EXPORTED)
        if original_label != label and original_label in labels:  # Prometheus renamed it
            labels_of_agent[original_label] = value
        elif label != NAME and label not in added and f"{_EXPORTED}{label}" not in labels:
            labels_of_agent[label] = value
    ranks = {label: _ROLES[role] for role, label in roles_of(tuple(labels_of_agent)).items() if role in _ROLES}
    return dict(sorted(labels_of_agent.items(), key=lambda pair: ranks.get(pair[0], len(_ROLES))))


def _escaped(text: str) -> str:
    """Return a label value, or the help of a metric, with the escapes of the text format."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _text(labels: Labels) -> str:
    """Return the name and the labels of a series for a message."""
    others = ",".join(f'{label}="{value}"' for label, value in labels.items() if label != NAME)
    return shown(f"{labels.get(NAME, '')}{{{others}}}")
