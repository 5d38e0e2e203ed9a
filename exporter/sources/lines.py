"""
The columns of a page's lines.

Every label of a quota line is understood, or has one value on the whole page, or the page is refused. A line is read by
the parts of a quota MBean's name that its own name and labels hold, whatever their spelling. Names and labels repeat,
so there is a recipe for each combination of them. A label that no recipe knows says where the page is from (its
cluster, its job) as long as it has one value. With several values it tells clients apart, and reading on without it
would add them up or show one of them for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import unquote_tag_value

from ..coverage import Unplaced
from ..errors import SourceUnreadable
from ..mapping import ATTRIBUTES, SERVER, Attribute, Bean, BeanColumn, attribute_of, wanted
from ..untrusted import shown
from .dialects import TextDialect, own_column, own_factor, own_labels, own_plan, properties_of
from .forms import Forms, Plan, Understood
from .spellings import (
    APP_INFO,
    QuotaName,
    Role,
    attribute_of_text,
    group_of,
    is_node_label,
    is_scrape_label,
    is_statistic_label,
    quota_name,
    roles_of,
    squeezed,
)
from .text_format import SampleKey, parse_series, text_of

_OF_ENTITIES: Final = frozenset(attribute.name for attribute in ATTRIBUTES if "user" in attribute.free)
_THROTTLE_TIME: Final = "throttle-time"
_SCOPE: Final = "otel_scope_"
"""The beginning of labels by which an OpenTelemetry Collector names the library that measured: one page has several."""
_OTHER_TYPE: Final = re.compile(r".*(?:replication|metrics|info|manager|stats|pool|channel|server)|rlm.*")
"""Types of MBeans that greedy rules make quota metrics of, without case and separators."""
_OF_NODES: Final = frozenset(
    [
        "name",
        "request",
        "error",
        "listener",
        "ip",
        "networkprocessor",
        "id",
        "quantile",
        "version",
        "observingbrokerid",
        "remotebrokerid",
        "logdir",
        "topic",
        "partition",
        "processor",
        "user",
        "clientid",
        "type",
        "objectname",
        "quotatype",
        "tags",
        "direction",
        "pool",
        "percentile",
        "nodeid",
        "observingbroker",
        "commitid",
        "brokerhost",
        "brokerport",
        "fetchertype",
        "state",
    ]
)
"""Labels that tell series about nodes apart, without case and separators."""
_PROPERTY: Final = re.compile(r'([^",=:*?<>]+)=("(?:[^"\\]|\\.)*+"|[^",=:*?<>]*)(?:, |(?=><))', re.DOTALL)
_CONTENT: Final = re.compile(r'(?:[^"\\*?\n]|\\["\\*?n])*')
_MOST_RECIPES: Final = 4096
"""
Combinations of a name and labels that are kept; Kafka's have some dozens, but a rule may put names of clients into
them.
"""
_MOST_TAGS: Final = 32
"""Most labels without a meaning that may tell series apart; a page may be read again for each of them."""
_CUT: Final = re.compile(r", [a-z-]+=")


class Replanned(Exception):
    """A label that was left out turns out to tell series apart, so that lines read before have to be read again."""


class _NotPlaced(Exception):
    """The reason why a line could not be placed."""


@dataclass(slots=True)
class _Seen:
    value: str
    key: SampleKey


class _Recipe(NamedTuple):
    column: Callable[[Mapping[str, str]], BeanColumn | None]
    meaningless_labels: tuple[str, ...] = ()
    """Labels without a meaning, which must have one value on the whole page."""
    of_node: bool = False
    factor: float = 1.0
    whole: bool = False
    """True if its labels are all key properties of a bean."""
    of_client: bool = False
    """True if the line is one that a rule makes of a client's quota."""
    plan: Plan | None = None
    """The plan by which labels become a bean, where it depends on their values alone."""


class PageLines:
    """
    Reads the lines of pages of one agent in one dialect.

    Args:
        dialect: The dialect of the pages.

    """

    def __init__(self, dialect: TextDialect) -> None:
        self._dialect = dialect
        self._unplaced: dict[SampleKey, tuple[tuple[str, ...], str]] = {}
        """The fault of each line that is named like a quota metric but could not be read, by its labels."""
        self.factors: dict[BeanColumn, float] = {}
        """The factor that makes a column's numbers Kafka's, where it is not 1."""
        self._recipes: dict[tuple[str, ...], _Recipe] = {}
        self._forms = Forms(self._in_full, self._understood, factor_of)
        self._seen: dict[str, _Seen] = {}
        self._tags: set[str] = set()
        """Labels that tell series apart although no role is known of them: tags of a custom quota callback."""
        self._everywhere: frozenset[str] = frozenset()
        self._on_clients: frozenset[str] | None = None
        """Labels without a role that all lines of clients have, where beans come whole; None before the first one."""
        self._has_clients = False
        self._others: dict[tuple[str, str | None, bool, bool], tuple[frozenset[str], SampleKey]] = {}
        """
        Labels without a meaning on the lines of clients, with a line that has them, by the line's name, quota type and
        kinds of names: such lines are made by one rule.
        """
        self._in_seconds: set[str] = set()
        """Names of throttle times that mention seconds, while Kafka's are milliseconds."""
        self._mapped: dict[tuple[str, ...], Attribute | None] = {}
        """The meaning of a bean by its type, attribute and the keys of its properties."""
        self._key: SampleKey = ""
        """The line that is being read."""
        self.long: Mapping[SampleKey, str] = {}
        """The long keys of the page that is read, by the short ones that stand for them."""

    def begin(self, keys: Iterable[SampleKey]) -> None:
        """
        Look at one line of each name to tell a tag of a custom quota callback from a label of the whole page.

        Raises ``SourceUnreadable``.
        """
        if not self._dialect.whole:
            return
        samples: dict[str, SampleKey] = {}
        for key in keys:
            samples[key.partition("{")[0]] = key
        common: frozenset[str] | None = None
        about_nodes = False
        for key in samples.values():
            name, labels = self._parsed(key)
            common = frozenset(labels) if common is None else common & labels.keys()
            parsed = quota_name(name)
            about_nodes |= parsed is None or parsed.attribute not in _OF_ENTITIES
            self._has_clients |= parsed is not None and bool(
                roles_of(tuple(labels)).keys() & {Role.USER, Role.CLIENT_ID}
            )
        self._everywhere = common if common is not None and about_nodes else frozenset()

    def column_of(self, key: SampleKey) -> BeanColumn | None:
        """Return the column of a line, None where it has none. Raises ``SourceUnreadable`` and ``Replanned``."""
        return self.columns_of((key,))[0][0]

    def columns_of(self, keys: Iterable[SampleKey]) -> list[list[BeanColumn | None]]:
        """Return a list with the column of each line, as `column_of`; from now on, ``factors`` are for these."""
        earlier, self.factors = self.factors, {}
        columns = self._forms.columns_of(keys)
        if earlier:  # factors of earlier pages, perhaps from lines of another unit that are gone
            for column in chain.from_iterable(columns):
                if column is not None:
                    earlier.pop(column, None)
            self.factors = earlier | self.factors
        return columns

    def _in_full(self, key: SampleKey) -> BeanColumn | None:
        return self.column(*self._parsed(key), key)

    def _understood(self, key: SampleKey) -> Understood | None:
        """Return how to read lines that are like one that was read."""
        name, labels = _parse(key)
        recipe = self._recipes.get((name, *labels))
        if recipe is None or recipe.plan is None:
            return None
        ignored = {label: self._seen[label].value for label in recipe.meaningless_labels}
        return Understood(labels, recipe.plan, ignored, partial(self._scale, name))

    def _scale(self, name: str, column: BeanColumn, factor: float) -> None:
        """Note that the numbers of a column are not in Kafka's unit."""
        self.factors[column] = factor
        if column.attribute == _THROTTLE_TIME and not own_labels(name):
            self._in_seconds.add(name)

    def _parsed(self, key: SampleKey) -> tuple[str, dict[str, str]]:
        return _parsed(self.long.get(key, key))

    def column(self, name: str, labels: Mapping[str, str], key: SampleKey = "") -> BeanColumn | None:
        """Return the column of a line by its name and labels."""
        signature = (name, *labels)
        recipe = self._recipes.get(signature)
        if recipe is None:
            if len(self._recipes) >= _MOST_RECIPES:
                self._recipes.clear()
                self._forms.clear()
                self._mapped.clear()
                self._others.clear()
            recipe = self._recipes[signature] = self._recipe(name, tuple(labels))
        for label in recipe.meaningless_labels:
            self._note(label, labels[label], key, of_node=recipe.of_node, whole=recipe.whole)
        self._key = key
        try:
            column = recipe.column(labels)
        except _NotPlaced as reason:
            self._unplaced[key] = tuple(labels), str(reason)
            return None
        if recipe.factor != 1.0 and column is not None:
            self.factors[column] = recipe.factor
        if column is not None and recipe.of_client:
            self._note_others(name, column.bean, frozenset(recipe.meaningless_labels), key)
        if (
            column is not None
            and column.attribute == _THROTTLE_TIME
            and column in self.factors
            and not own_labels(name)
        ):
            self._in_seconds.add(name)
        return column

    def in_seconds(self, present: Iterable[SampleKey]) -> str:
        """
        Return a metric of throttle times that is in seconds by its name or a label.

        Return an empty text where no such series is ``present``.
        """
        if not self._in_seconds:
            return ""
        self._in_seconds.intersection_update({text_of(key).partition("{")[0].strip() for key in present})
        return min(self._in_seconds, default="")

    def unplaced_lines(self) -> Unplaced | None:
        """Return the lines that are named like quota metrics, but could not be read."""
        if not self._unplaced:
            return None
        key, (labels, reason) = next(iter(self._unplaced.items()))
        count, expected = len(self._unplaced), self._dialect.labels
        return Unplaced(count=count, example=text_of(key), labels=labels, expected=expected, reason=reason)

    def labels_of_page(self) -> tuple[str, ...]:
        """
        Return the labels that could be tags of a custom quota callback, but have one value on all lines of clients.

        They would be tags if they had several values, or if the line of a client lacked them.
        """
        return tuple(sorted(filter(self._is_tag, (self._on_clients or frozenset()) - self._tags)))

    def forget(self, present: Iterable[SampleKey]) -> None:
        """Forget lines that are not ``present`` any more, and the names of the page that was read."""
        self._forms.forget()
        if self._unplaced:
            present_keys = set(present)
            self._unplaced = {key: unplaced for key, unplaced in self._unplaced.items() if key in present_keys}

    def _note_others(self, name: str, bean: Bean, labels: frozenset[str], key: SampleKey) -> None:
        """
        Refuse the page when a label is on some of the lines that one rule makes, and not on others.

        It tells series apart as several values do.
        """
        keys = {tag for tag, _ in bean.properties}
        first_labels, earlier_key = self._others.setdefault(
            (name, bean.get("type"), "user" in keys, "client-id" in keys), (labels, key)
        )
        if first_labels == labels:
            return
        label = min(first_labels ^ labels)
        advice = (
            "Give quotascope the agent of each broker instead of a page that joins them (/federate, or one "
            "exporter for several brokers)"
            if is_scrape_label(label)
            else "Remove it from the agent's rules, or use the rules that `quotascope rules jmx-exporter` writes"
        )
        raise SourceUnreadable(
            f"the label {shown(label)} tells series apart, as some of one metric have it and others have not: "
            f"{shown(text_of(earlier_key))} "
            f"and {shown(text_of(key))}. {advice}"
        )

    def _note(self, label: str, value: str, key: SampleKey, *, of_node: bool, whole: bool = False) -> None:
        """Refuse the page when a label has several values, unless it can be a tag of a custom quota callback."""
        seen = self._seen.setdefault(label, _Seen(value, key))
        if seen.value == value:
            return
        from_elsewhere = is_scrape_label(label)
        is_usable = not from_elsewhere if of_node else whole and self._can_be_tag(label)
        if is_usable:
            self._become_tags({label}, replanned=True)
        first_text, second_text = shown(text_of(seen.key)), shown(text_of(key))
        if from_elsewhere:
            whose = "brokers" if is_node_label(label) else "brokers or clusters"
            raise SourceUnreadable(
                f"the page has series of several {whose}: {first_text} and {second_text} differ in the label "
                f"{shown(label)}. "
                "Give quotascope "
                "the agent of each broker instead of a page that joins them (/federate, or one exporter for "
                "several brokers)"
            )
        raise SourceUnreadable(
            f"the label {shown(label)} tells series apart, but Kafka's quotas have nothing of that name: "
            f"{first_text} and "
            f"{second_text}. "
            "Remove it from the agent's rules, or use the rules that `quotascope rules jmx-exporter` writes"
        )

    def _recipe(self, name: str, labels: tuple[str, ...]) -> _Recipe:
        if known_labels := own_labels(name):
            meaningless = tuple(label for label in labels if label not in known_labels)
            return _Recipe(partial(self._own_column, name), meaningless, plan=own_plan(name, labels))
        parsed = quota_name(name)
        roles = roles_of(labels)
        if Role.OBJECT_NAME in roles:
            named = roles.values()
            meaningless = tuple(
                label for label in labels if (label not in named if parsed else self._is_other(label, of_node=True))
            )
            factor = parsed.factor if parsed else 1.0
            return _Recipe(
                partial(_by_object_name, roles[Role.OBJECT_NAME]), meaningless, parsed is None, factor=factor
            )
        if parsed is not None and _can_be_quota(parsed, roles):
            whole = self._dialect.whole and self._dialect.names_whole(name, labels)
            return self._quota_recipe(parsed, roles, labels, whole=whole)
        meaningless = tuple(label for label in labels if self._is_other(label, of_node=True))
        return _Recipe(partial(self._of_node, name, frozenset(meaningless)), meaningless, of_node=True)

    def _own_column(self, name: str, labels: Mapping[str, str]) -> BeanColumn | None:
        """Return the column of a line that is made by rules of `quotascope rules jmx-exporter`."""
        column = own_column(name, labels)
        if column is not None and (factor := own_factor(column)) != 1.0:
            self.factors[column] = factor
        return column

    def _is_other(self, label: str, *, of_node: bool) -> bool:
        return label not in self._tags and not (of_node and squeezed(label) in _OF_NODES)

    def _of_node(self, name: str, ignored: frozenset[str], labels: Mapping[str, str]) -> BeanColumn | None:
        relevant = {label: value for label, value in labels.items() if label not in ignored} if ignored else labels
        return self._dialect.node_column_of(name, relevant)

    def _quota_recipe(
        self, parsed: QuotaName, roles: dict[Role, str], labels: tuple[str, ...], *, whole: bool
    ) -> _Recipe:
        if parsed.ending:
            return _Recipe(partial(_refuse_rest, parsed.ending))
        type_label = roles.get(Role.TYPE)
        has_client = not roles.keys().isdisjoint({Role.USER, Role.CLIENT_ID})
        if type_label and parsed.type and whole and not has_client:
            type_label = None  # such as `quota.type`, a tag of Strimzi's quotas plugin
        pairs = [(label, role.value) for role in (Role.USER, Role.CLIENT_ID) if (label := roles.get(role))]
        known_labels = {label for label, _ in pairs}
        if type_label and (not parsed.type or parsed.type != APP_INFO):
            pairs.insert(0, (type_label, Role.TYPE.value))
        if type_label:
            known_labels.add(type_label)
        attribute_label = None if parsed.attribute else roles.get(Role.ATTRIBUTE)
        if attribute_label:
            known_labels.add(attribute_label)
        if parsed.type == APP_INFO:
            known_labels |= {label for label in labels if squeezed(label) in {"id", "version", "commitid"}}
            return _Recipe(partial(_app_info, roles), tuple(label for label in labels if label not in known_labels))
        remaining = tuple(label for label in labels if label not in known_labels)
        tags = tuple(label for label in remaining if whole and self._is_tag(label))
        if whole and has_client:
            tags = self._tags_of_client(remaining, tags)
        elif tags and parsed.attribute in _OF_ENTITIES:
            new_tags = {*tags} - self._tags
            self._become_tags(new_tags, replanned=not new_tags.isdisjoint(self._on_clients or ()))
        meaningless = tuple(label for label in remaining if label not in tags)
        column = partial(self._quota_column, parsed, tuple(pairs), tags, attribute_label, whole)
        return _Recipe(
            column,
            meaningless,
            factor=parsed.factor,
            whole=whole,
            of_client=has_client and not whole,
            plan=self._plan(parsed.type, pairs, tags, attribute_label, whole=whole),
        )

    def _plan(
        self,
        group: str,
        pairs: list[tuple[str, str]],
        tags: tuple[str, ...],
        attribute_label: str | None,
        *,
        whole: bool,
    ) -> Plan | None:
        """Return the plan by which labels become a bean; None where two labels are the same key property."""
        labels = {key: label for label, key in pairs} | {tag: tag for tag in tags}
        if len(labels) < len(pairs) + len(tags) or Role.TYPE.value in tags:
            return None
        return Plan(
            labels={key: label for key, label in labels.items() if key != Role.TYPE.value},
            type_of=partial(_type_of, group),
            type_label=labels.get(Role.TYPE.value, ""),
            attribute_label=attribute_label or "",
            one_by_one=whole or not self._dialect.quoted,
            types=group,
        )

    def _tags_of_client(self, labels: tuple[str, ...], tags: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return the tags of a client's line.

        A label that all lines of clients have, with one value, is one of the page. Raises ``Replanned``.
        """
        common_before = self._on_clients
        self._on_clients = frozenset(labels) if common_before is None else common_before & frozenset(labels)
        if common_before is not None:
            new_tags = (common_before | {*tags}) - self._on_clients - self._tags
            self._become_tags(set(filter(self._is_tag, new_tags)), replanned=True)
        return tuple(label for label in tags if label in self._tags)

    def _become_tags(self, labels: set[str], *, replanned: bool) -> None:
        """Take labels for tags from now on. Raises ``Replanned`` where lines were read without them."""
        if len(self._tags | labels) > _MOST_TAGS:
            raise SourceUnreadable(
                f"more than {_MOST_TAGS} labels without a meaning tell series apart, {shown(min(labels))} is one: "
                "is this a metrics agent?"
            )
        self._tags |= labels
        if replanned and labels:
            self._recipes.clear()
            self._forms.clear()
            raise Replanned(", ".join(sorted(labels)))

    def _is_tag(self, label: str) -> bool:
        """
        Return whether a label without a role can be a tag of a custom quota callback.

        Tags are shown only by pages on which all key properties of a bean are labels.
        """
        return label in self._tags or (label not in self._everywhere and self._can_be_tag(label))

    def _can_be_tag(self, label: str) -> bool:
        return not is_statistic_label(label) and not (is_scrape_label(label) and self._has_clients)

    def _quota_column(
        self,
        parsed: QuotaName,
        pairs: tuple[tuple[str, str], ...],
        tags: tuple[str, ...],
        attribute_label: str | None,
        whole: bool,  # noqa: FBT001 - bound by position
        labels: Mapping[str, str],
    ) -> BeanColumn | None:
        texts = {key: text for label, key in pairs if (text := labels[label])}
        texts.update((label, text) for label in tags if (text := labels[label]))
        try:
            properties = self._unquoted(texts, whole=whole)
        except MalformedName:
            first_type = texts.get("type", "").partition(", ")[0]
            if first_type and group_of(first_type) is None and _OTHER_TYPE.fullmatch(squeezed(first_type)):
                return None
            raise _NotPlaced("its values are not quoted as in the name of an MBean") from None
        attribute_and_factor = (
            attribute_of_text(labels[attribute_label]) if attribute_label else (parsed.attribute, 1.0)
        )
        if attribute_and_factor is None:
            return None
        attribute, factor = attribute_and_factor
        named = properties.pop("type", None)
        group = (
            parsed.type
            if named is None
            else self._group(parsed, next((label for label, key in pairs if key == "type"), "type"), named)
        )
        if group is None:
            return None
        if not group:
            raise _NotPlaced("neither its name nor a label has the quota type")
        if group == APP_INFO:
            return _app_info_column(properties.get("client-id", "")) if attribute == "start-time-ms" else None
        if not properties and attribute in _OF_ENTITIES and not whole:
            # Kafka counts clients without a name like this, but so does a rule that loses names for any client
            raise _NotPlaced("it has no label for a user or a client-id")
        column = self._mapped_column(properties | {"type": group}, attribute)
        if factor != 1.0 and column is not None:
            self.factors[column] = factor
        return column

    def _mapped_column(self, properties: Mapping[str, str], attribute: str) -> BeanColumn | None:
        """Return the column of a bean by its key properties, None where it has no meaning."""
        column = BeanColumn(Bean.of(SERVER, properties), attribute)
        shape = (properties["type"], attribute, *properties)
        if shape not in self._mapped:
            self._mapped[shape] = attribute_of(column)
        mapped = self._mapped[shape]
        return None if mapped is None else BeanColumn(column.bean, attribute, mapped)

    def _group(self, parsed: QuotaName, label: str, text: str) -> str | None:
        """Return the type that the value of a label names; None for the type of other MBeans. Raises ``_NotPlaced``."""
        group = group_of(text)
        if group is None and parsed.type:  # the label has another meaning
            self._note(label, text, self._key, of_node=False)
            return parsed.type
        if group is None and _OTHER_TYPE.fullmatch(squeezed(text)):
            return None
        if group is None:
            raise _NotPlaced(f"{shown(text)} is no quota type")
        if parsed.type and group != parsed.type:
            raise _NotPlaced(f"its name says {parsed.type}, a label {group}")
        return group

    def _unquoted(self, texts: dict[str, str], *, whole: bool) -> dict[str, str]:
        """Return the values of labels as unquoted key properties. Raises ``MalformedName``."""
        if not self._dialect.quoted:
            return texts
        if whole:
            return {key: unquote_tag_value(text) for key, text in texts.items()}
        if not any('"' in text or "\\" in text or ", " in text for text in texts.values()):
            return texts
        joined = ", ".join([f"{key}={text}" for key, text in texts.items()])
        try:
            return properties_of(joined)
        except MalformedName:
            return {key: _without_quotes(text) for key, text in texts.items()}


def factor_of(key: SampleKey) -> float:
    """Return the factor from the number of a line to Kafka's unit, by the unit in its name or a label."""
    parsed = quota_name(text_of(key).partition("{")[0].strip())
    if parsed is not None and parsed.attribute:
        return parsed.factor
    try:
        name, labels = _parsed(key)
    except SourceUnreadable:
        return 1.0  # the key stands for a long one
    if own_labels(name):
        column = own_column(name, labels)
        return 1.0 if column is None else own_factor(column)
    label = roles_of(tuple(labels)).get(Role.ATTRIBUTE)
    attribute_and_factor = attribute_of_text(labels[label]) if label else None
    return attribute_and_factor[1] if attribute_and_factor else 1.0


def _type_of(group: str, text: str) -> str | None:
    """Return the type that name and label agree on; None where they differ, or the type is not about quotas."""
    type_in_label = group_of(text) if text else group
    return type_in_label if type_in_label and type_in_label != APP_INFO and group in {"", type_in_label} else None


def _refuse_rest(ending: str, _labels: Mapping[str, str]) -> BeanColumn | None:
    """Raise ``_NotPlaced`` for a quota metric whose name goes on behind Kafka's attribute."""
    raise _NotPlaced(f"{shown(ending)} at the end of its name is no unit of Kafka's quota metrics")


def _by_object_name(label: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column that jmx_exporter names in full: ``kafka.server<type=Produce, user=a><>byte-rate``."""
    text = labels[label]
    domain, _, text_of_bean = text.partition("<")
    properties: dict[str, str] = {}
    position = 0
    try:
        while match := _PROPERTY.match(text_of_bean, position):
            properties[match[1]] = unquote_tag_value(match[2])
            position = match.end()
    except MalformedName:
        properties = {}
    if not properties or not text_of_bean.startswith("><", position):
        raise _NotPlaced("its label _objectname names no MBean")
    attribute = text_of_bean[position + 2 :].rpartition(">")[2]
    return wanted(BeanColumn(Bean.of(domain, properties), attribute))


def _parsed(key: SampleKey) -> tuple[str, dict[str, str]]:
    """Return name and labels of a line, without labels that a Collector added. Raises ``SourceUnreadable``."""
    name, labels = _parse(key)
    if _SCOPE in key:
        labels = {label: value for label, value in labels.items() if not label.startswith(_SCOPE)}
    return name, labels


def _parse(key: SampleKey) -> tuple[str, dict[str, str]]:
    """Return name and labels of a line as they stand. Raises ``SourceUnreadable``."""
    text = text_of(key)
    try:
        return parse_series(text)
    except ValueError as error:
        raise SourceUnreadable(f"the answer is not Prometheus text: {error} ({shown(text)})") from None


def _can_be_quota(parsed: QuotaName, roles: Mapping[Role, str]) -> bool:
    """Return whether a line is about quotas: by its name, or by its labels where the name leaves it open."""
    if parsed.certain:
        return True
    has_client = not roles.keys().isdisjoint({Role.USER, Role.CLIENT_ID})
    return (
        has_client
        and (bool(parsed.attribute or parsed.ending) or Role.ATTRIBUTE in roles)
        and (bool(parsed.type) or Role.TYPE in roles)
    )


def _without_quotes(text: str) -> str:
    """
    Return a value as Java wrote it, given without its quotes, which a rule's pattern left out: escapes stay.

    Raises ``MalformedName``.
    """
    if not _CONTENT.fullmatch(text) or _CUT.search(text):
        raise MalformedName(text, "a badly quoted value")
    return unquote_tag_value(f'"{text}"')


def _app_info(roles: Mapping[Role, str], labels: Mapping[str, str]) -> BeanColumn | None:
    type_label, named = roles.get(Role.TYPE), roles.get(Role.CLIENT_ID)
    if type_label and group_of(labels[type_label]) != APP_INFO:
        return None
    return _app_info_column(labels.get("id") or (labels.get(named, "") if named else ""))


def _app_info_column(node_id: str) -> BeanColumn | None:
    """Return the column of a node's start time; the name of its bean has the node id."""
    bean = Bean.of(SERVER, {"type": APP_INFO, "id": node_id})
    return wanted(BeanColumn(bean, "StartTimeMs")) if node_id else None
