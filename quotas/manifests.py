"""
Quotas read from Strimzi's manifests.

Those that `kafka_users` writes, that people write, and of `kubectl get kafkauser -o yaml`.

A `KafkaUser` has the quotas of one user, whose name in Kafka follows from its authentication (Strimzi:
`KafkaUserModel.getUserName`); the `Kafka` resource those of the default user. Manifests of other kinds beside them are
passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.numbers import INT_MAX

from .errors import InvalidQuotas
from .foreign import INSTEAD, of_manifest
from .kafka_user import CERTIFICATE, FIELDS, LONGEST_CERTIFICATE_NAME, WHOLE, is_name
from .quota_set import Entity, QuotaSet, number, problems_of, to_admin
from .yaml_file import Located

GROUP: Final = "kafka.strimzi.io/"
"""Beginning of the `apiVersion` of Strimzi's resources."""
_LEVELS: Final = 8
"""Number of levels of a document that are read: a `List` has two more than a `KafkaUser`."""
CLUSTER: Final = "strimzi.io/cluster"

_USER, _KAFKA = "KafkaUser", "Kafka"
_CERTIFIED: Final = frozenset({"tls", "tls-external"})
_BY_NAME: Final = frozenset({"scram-sha-512"})
_MOST_KINDS: Final = 5
_KEYS: Final = {name: key for key, name in FIELDS.items()}
_NULL: Final = "~nulNUL"
"""Letters of the plain texts that YAML reads as null: `~`, `null`, `Null` and `NULL`."""
_Content = Mapping[str, Located]


def is_manifest(document: Mapping[str, object]) -> bool:
    """Return whether a document has the keys of a resource of Kubernetes."""
    return {"apiVersion", "kind"} <= document.keys()


def levels_of(document: Mapping[str, str]) -> int | None:
    """
    Return the number of levels of a document to read; None for all.

    Of a resource without quotas only the keys are read, as anything may stand below them.
    """
    if not is_manifest(document):
        return None
    kind = document["kind"]
    return _LEVELS if kind in {_USER, _KAFKA} or kind.endswith("List") else 1


def quotas_of_manifests(documents: Sequence[Located], subject: str) -> QuotaSet:
    """
    Return the quotas of all `KafkaUser` and `Kafka` resources in some documents.

    Raises `InvalidQuotas` about `subject`, with every problem in the order of lines: keys that cannot be mapped, and
    clusters or namespaces that contradict each other, since a user belongs to one cluster.
    """
    reading = _Reading()
    for document in documents:
        reading.read(document)
    reading.agree()
    if not reading.problems and not reading.is_ours:
        kinds = ", ".join(dict.fromkeys(reading.kinds))
        reading.add(
            documents[0].line,
            f"there is no {_USER} and no {_KAFKA} resource of Strimzi, only {kinds or 'nothing'}; {INSTEAD}",
        )
    if reading.problems:
        raise InvalidQuotas(subject, [text for _, text in sorted(reading.problems, key=lambda problem: problem[0])])
    return QuotaSet(reading.quotas)


@dataclass(slots=True)
class _Reading:
    """Reader of resources, one by one, that collects their problems."""

    quotas: dict[Entity, Mapping[str, float]] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)
    """Lines, and sentences that begin with them."""
    kinds: list[str] = field(default_factory=list)
    """Kinds of the resources that are passed over."""
    is_ours: bool = False
    """True if there is a resource that could have quotas."""
    _lines: dict[Entity, int] = field(default_factory=dict)
    _clusters: dict[str, int] = field(default_factory=dict)
    """Lines where each cluster, and each namespace, is named first."""
    _namespaces: dict[str, int] = field(default_factory=dict)

    def add(self, line: int, about: str) -> None:
        """Record a problem."""
        self.problems.append((line, f"line {line}: {about}"))

    def read(self, item: Located) -> None:
        """Read the quotas of a resource, or of all resources in a list."""
        content = item.mapping
        kind = "" if content is None else _text(content, "kind")
        version = "" if content is None else _text(content, "apiVersion")
        if content is None or not kind or not version:
            self.add(item.line, "expected a resource of Kubernetes with `apiVersion` and `kind`, as the others")
        elif kind.endswith("List") and "items" in content:
            for resource in content["items"].items or ():
                self.read(resource)
        elif kind in {_USER, _KAFKA} and version.startswith(GROUP):
            self.is_ours = True
            self._read_resource(kind, content, item.line)
        elif kind == _USER:
            self.add(
                content["apiVersion"].line,
                f"this {_USER} is of {version[:60]!r}; read are those of Strimzi, {GROUP}v1 and v1beta2",
            )
        else:
            self.kinds.append(of_manifest(kind[:60], version[:60]))

    def _read_resource(self, kind: str, content: _Content, line: int) -> None:
        """Read the quotas of a `KafkaUser`, or of the default user in a `Kafka` resource."""
        metadata, spec = (self._section(content, key) for key in ("metadata", "spec"))
        name = self._name(kind, metadata, line)
        labels = self._section(metadata, "labels", "metadata.labels")
        cluster = name if kind == _KAFKA else _text(labels, CLUSTER)
        if cluster:
            # a user names its cluster in a label; a cluster is the resource itself
            self._clusters.setdefault(cluster, labels[CLUSTER].line if kind == _USER else line)
        # the User Operator may watch another namespace than that of the cluster, but one only
        if kind == _USER and (namespace := _text(metadata, "namespace")):
            self._namespaces.setdefault(namespace, metadata["namespace"].line)
        if name and kind == _USER:
            user = self._user(name, spec, line)
            if user is not None:
                self._take(QuotaEntity(user), self._section(spec, "quotas", "spec.quotas"), "spec.quotas", line)
        elif name:
            self._read_default(self._section(spec, "kafka", "spec.kafka"), line)

    def _read_default(self, kafka: _Content, line: int) -> None:
        """Read the quotas of the default user from `spec.kafka`, if it has any."""
        if "quotas" not in kafka:
            return
        quotas = dict(self._section(kafka, "quotas", "spec.kafka.quotas"))
        plugin_type = quotas.pop("type", None)
        if plugin_type is None or plugin_type.value != "kafka":
            where = kafka["quotas"].line if plugin_type is None else plugin_type.line
            text = "" if plugin_type is None else plugin_type.text
            self.add(
                where,
                f"spec.kafka.quotas of type {text[:60]!r} are settings of a plugin of the brokers, "
                "and no quotas of Kafka: only type kafka is read; leave this resource out",
            )
            return
        self._take(QuotaEntity(DEFAULT), quotas, "spec.kafka.quotas", line)

    def _take(self, entity: QuotaEntity, quotas: _Content, place: str, line: int) -> None:
        """Add the quotas of an entity, unless they have a problem; `place` is their key in messages."""
        values = dict(self._values(quotas, place))
        wrong = problems_of(to_admin(entity), values)
        for problem in wrong:
            # the sentence names Kafka's keys: take the first line with one of them
            problem_line = min(
                (item.line for name, item in quotas.items() if _KEYS.get(name, name) in problem), default=line
            )
            self.add(problem_line, f"{place} of {entity}: {problem}")
        if entity in self._lines:
            self.add(line, f"{entity} is there already in line {self._lines[entity]}")
        self._lines.setdefault(entity, line)
        if not wrong:
            self.quotas.setdefault(entity, values)

    def _values(self, quotas: _Content, place: str) -> Iterator[tuple[str, float]]:
        """Yield Kafka's keys with their values; record a problem for each field without such a value."""
        for name, item in quotas.items():
            key = _KEYS.get(name)
            value = None if item.quoted else number(item.text)
            if key is None:
                close = get_close_matches(name[:60], _KEYS, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(_KEYS)}"
                self.add(item.line, f"unknown key {name[:60]!r} in {place}; {hint}")
            elif item.value is None and not item.text.strip(_NULL):
                continue  # null, as if the field were not there
            elif value is None:
                self.add(item.line, f"{place}.{name} must be a plain number")
            elif key in WHOLE and not (abs(value) <= INT_MAX and value == int(value)):
                self.add(item.line, f"{place}.{name} must be a whole number up to {INT_MAX}, not {item.text[:40]}")
            else:
                yield key, value

    def _name(self, kind: str, metadata: _Content, line: int) -> str:
        """Return the name of a resource; record a problem and return an empty text if it has none."""
        item = metadata.get("name")
        if item is None:
            self.add(line, f"this {kind} has no metadata.name")
            return ""
        if not isinstance(item.value, str) or not is_name(item.value):
            self.add(item.line, f"metadata.name {item.text[:60]!r} is no name that Kubernetes takes")
            return ""
        return item.value

    def _user(self, name: str, spec: _Content, line: int) -> str | None:
        """Return the name of the user in Kafka; record a problem and return None if the name cannot be known."""
        authentication = self._section(spec, "authentication", "spec.authentication")
        if "authentication" not in spec or spec["authentication"].value is None:
            return name
        login_type = authentication.get("type")
        of_type = None if login_type is None else login_type.value
        if of_type in _BY_NAME:
            return name
        if of_type not in _CERTIFIED:
            text = "no type" if login_type is None else f"the type {login_type.text[:60]!r}"
            supported = ", ".join(sorted(_BY_NAME | _CERTIFIED))
            where = spec["authentication"].line if login_type is None else login_type.line
            self.add(
                where,
                f"spec.authentication has {text}, from which the name of the user in Kafka does not follow; "
                f"known: {supported}",
            )
            return None
        if len(name) > LONGEST_CERTIFICATE_NAME:
            self.add(
                line,
                f"metadata.name has more than {LONGEST_CERTIFICATE_NAME} characters, "
                "the most of a user with a certificate",
            )
            return None
        return f"{CERTIFICATE}{name}"

    def _section(self, content: _Content, key: str, place: str = "") -> _Content:
        """Return the keys and values under a key, none without it; record a problem if there is something else."""
        item = content.get(key)
        if item is None or (item.value is None and not item.text.strip(_NULL)):
            return {}
        if item.mapping is None:
            self.add(item.line, f"{place or key} must have keys and values")
            return {}
        return item.mapping

    def agree(self) -> None:
        """Record a problem for clusters and namespaces that contradict one another."""
        for kind, named in (("cluster", self._clusters), ("namespace", self._namespaces)):
            if len(named) > 1:
                (first_name, line), *further = sorted(named.items(), key=lambda item: item[1])
                texts = ", ".join(f"{name[:60]!r} (line {other_line})" for name, other_line in further[:_MOST_KINDS])
                self.add(
                    further[0][1],
                    f"the {kind} {first_name[:60]!r} (line {line}) and {texts}: "
                    f"the users of one cluster have one {kind}; give the manifests of one at a time",
                )


def _text(content: _Content, key: str) -> str:
    """Return the text under a key; empty if there is none."""
    value = content[key].value if key in content else None
    return value if isinstance(value, str) else ""
