"""
Finds the columns of a page's lines.

The name and the labels of a line hold the parts of a quota MBean's name, in any spelling. They repeat from line to
line, so there is one recipe for each combination of a name and labels.

Every label of a quota line is understood, or has one value on the whole page, or the page is refused. A label with one
value describes the whole page, as its cluster or its job does. A label with several values distinguishes clients:
without it, the clients would be added up, or one of them would be shown for all.
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
from .forms import FormMeaning, Forms, Plan
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

_ENTITY_ATTRIBUTES: Final = frozenset(attribute.name for attribute in ATTRIBUTES if "user" in attribute.free)
_THROTTLE_TIME: Final = "throttle-time"
_SCOPE: Final = "otel_scope_"
"""Beginning of the labels of an OpenTelemetry Collector that name the measuring library; one page has several."""
_OTHER_TYPE: Final = re.compile(r".*(?:replication|metrics|info|manager|stats|pool|channel|server)|rlm.*")
"""Types of MBeans that greedy rules show as quota metrics, without case and separators."""
_NODE_SERIES_LABELS: Final = frozenset(
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
"""Labels that distinguish series about nodes, without case and separators."""
_PROPERTY: Final = re.compile(r'([^",=:*?<>]+)=("(?:[^"\\]|\\.)*+"|[^",=:*?<>]*)(?:, |(?=><))', re.DOTALL)
_CONTENT: Final = re.compile(r'(?:[^"\\*?\n]|\\["\\*?n])*')
_MOST_RECIPES: Final = 4096
"""
Most combinations of a name and labels that are kept.

An agent has some dozens, unless a rule puts names of clients into metric names.
"""
_MOST_TAGS: Final = 32
"""Most labels without a role that may distinguish series; a page may be read again for each of them."""
_CUT: Final = re.compile(r", [a-z-]+=")
"""Pattern of a key property in a value, which shows that a rule's pattern has cut the name in the wrong place."""


class Replanned(Exception):
    """A label that was ignored distinguishes series, so that the lines before it must be read again."""


class _NotPlaced(Exception):
    """A line could not be placed; the text says why."""


@dataclass(slots=True)
class _FirstValue:
    """The first value of a label without a meaning, and the line that has it."""

    value: str
    key: SampleKey


class _Recipe(NamedTuple):
    """The way to read lines with the same name and labels."""

    column: Callable[[Mapping[str, str]], BeanColumn | None]
    """Function from the values of labels to the column; None for a line that is not used."""
    meaningless_labels: tuple[str, ...] = ()
    """Labels without a meaning, which must have one value on the whole page."""
    of_node: bool = False
    """True if the line is about the node, or not about quotas."""
    factor: float = 1.0
    """Factor from the number of the line to Kafka's unit."""
    whole: bool = False
    """True if the labels are all key properties of a bean."""
    of_client: bool = False
    """True if the line is about a client's quota, and made by an agent's rule."""
    plan: Plan | None = None
    """The plan by which labels become a bean, if that depends on their values alone."""


class PageLines:
    """
    Reads the lines of pages of one agent in one dialect.

    Args:
        dialect: The dialect of the pages.

    """

    def __init__(self, dialect: TextDialect) -> None:
        self._dialect = dialect
        self._unplaced: dict[SampleKey, tuple[tuple[str, ...], str]] = {}
        """Labels and fault of the lines that are named like a quota metric but could not be read."""
        self.factors: dict[BeanColumn, float] = {}
        """Factors from the numbers of a column to Kafka's unit, where the factor is not 1."""
        self._recipes: dict[tuple[str, ...], _Recipe] = {}
        """Recipes by the name and the labels of a line."""
        self._forms = Forms(self._read_in_full, self._form_meaning, factor_of)
        self._first_values: dict[str, _FirstValue] = {}
        """First values of labels without a meaning."""
        self._tags: set[str] = set()
        """Labels without a role that distinguish series: tags of a custom quota callback."""
        self._page_labels: frozenset[str] = frozenset()
        """Labels that the lines of all names have."""
        self._client_labels: frozenset[str] | None = None
        """Labels without a role that all lines of clients have, in a dialect with whole beans; None without a line."""
        self._has_clients = False
        """True if a line has a label for a user or a client-id."""
        self._labels_by_rule: dict[tuple[str, str | None, bool, bool], tuple[frozenset[str], SampleKey]] = {}
        """
        Labels without a meaning on the lines of clients, with a line that has them.

        The key stands for the rule that makes the lines: their name, quota type, and whether they have a user and a
        client-id.
        """
        self._in_seconds: set[str] = set()
        """Names of throttle times that mention seconds, while Kafka's are milliseconds."""
        self._mapped: dict[tuple[str, ...], Attribute | None] = {}
        """Meanings of beans by type, attribute and the keys of their properties."""
        self._key: SampleKey = ""
        """The line that is being read."""
        self.long: Mapping[SampleKey, str] = {}
        """The long keys of the page that is read, by the short keys that stand for them."""

    def begin(self, keys: Iterable[SampleKey]) -> None:
        """
        Look at a line of each name, to distinguish tags of a custom quota callback from labels of the whole page.

        Raises ``SourceUnreadable``.
        """
        if not self._dialect.whole:
            return
        key_of_name: dict[str, SampleKey] = {}
        for key in keys:
            key_of_name[key.partition("{")[0]] = key  # any line of a name will do
        common_labels: frozenset[str] | None = None
        has_lines_of_nodes = False
        for key in key_of_name.values():
            name, labels = self._parsed(key)
            common_labels = frozenset(labels) if common_labels is None else common_labels & labels.keys()
            parsed = quota_name(name)
            has_lines_of_nodes |= parsed is None or parsed.attribute not in _ENTITY_ATTRIBUTES
            if parsed is not None and roles_of(tuple(labels)).keys() & {Role.USER, Role.CLIENT_ID}:
                self._has_clients = True
        # only a label that lines of nodes have, too, cannot be a tag of a callback
        self._page_labels = common_labels if common_labels is not None and has_lines_of_nodes else frozenset()

    def column_of(self, key: SampleKey) -> BeanColumn | None:
        """Return the column of a line; None if it has none. Raises ``SourceUnreadable`` and ``Replanned``."""
        return self.columns_of((key,))[0][0]

    def columns_of(self, keys: Iterable[SampleKey]) -> list[list[BeanColumn | None]]:
        """
        Return the column of each line in a list of its own, None if the line has none.

        The lines replace earlier lines with the same column in ``factors``. Raises ``SourceUnreadable`` and
        ``Replanned``.
        """
        earlier_factors, self.factors = self.factors, {}
        columns = self._forms.columns_of(keys)
        if earlier_factors:  # of earlier pages, perhaps from lines of another unit that are gone
            for column in chain.from_iterable(columns):
                if column is not None:
                    earlier_factors.pop(column, None)
            self.factors = earlier_factors | self.factors
        return columns

    def _read_in_full(self, key: SampleKey) -> BeanColumn | None:
        """Return the column of a line by its parsed name and labels."""
        return self.column(*self._parsed(key), key)

    def _form_meaning(self, key: SampleKey) -> FormMeaning | None:
        """Return the meaning of the form of a line that was read in full; None if its lines are all read in full."""
        name, labels = _parse(key)
        recipe = self._recipes.get((name, *labels))
        if recipe is None or recipe.plan is None:
            return None
        ignored = {label: self._first_values[label].value for label in recipe.meaningless_labels}
        return FormMeaning(labels, recipe.plan, ignored, partial(self._note_factor, name))

    def _note_factor(self, name: str, column: BeanColumn, factor: float) -> None:
        """Note that the numbers of a column, which a metric shows, are not in Kafka's unit."""
        self.factors[column] = factor
        if column.attribute == _THROTTLE_TIME and not own_labels(name):
            self._in_seconds.add(name)

    def _parsed(self, key: SampleKey) -> tuple[str, dict[str, str]]:
        """Return name and labels of a line, which may be a long one. Raises ``SourceUnreadable``."""
        return _parsed(self.long.get(key, key))

    def column(self, name: str, labels: Mapping[str, str], key: SampleKey = "") -> BeanColumn | None:
        """Return the column of a line by its name and labels; None if it has none, or could not be placed."""
        signature = (name, *labels)
        recipe = self._recipes.get(signature)
        if recipe is None:
            if len(self._recipes) >= _MOST_RECIPES:  # all is learned again from the lines that follow
                self._recipes.clear()
                self._forms.clear()
                self._mapped.clear()
                self._labels_by_rule.clear()
            recipe = self._recipes[signature] = self._recipe(name, tuple(labels))
        for label in recipe.meaningless_labels:
            self._check_value(label, labels[label], key, of_node=recipe.of_node, whole=recipe.whole)
        self._key = key
        try:
            column = recipe.column(labels)
        except _NotPlaced as reason:
            self._unplaced[key] = tuple(labels), str(reason)
            return None
        if column is None:
            return None
        if recipe.factor != 1.0:
            self.factors[column] = recipe.factor
        if recipe.of_client:
            self._check_labels_of_rule(name, column.bean, frozenset(recipe.meaningless_labels), key)
        if column.attribute == _THROTTLE_TIME and column in self.factors and not own_labels(name):
            self._in_seconds.add(name)
        return column

    def in_seconds(self, present: Iterable[SampleKey]) -> str:
        """
        Return the name of a metric of throttle times that is in seconds by its name or a label.

        It is empty if no line of such a metric is ``present``.
        """
        if not self._in_seconds:
            return ""
        present_names = {text_of(key).partition("{")[0].strip() for key in present}
        self._in_seconds.intersection_update(present_names)
        return min(self._in_seconds, default="")

    def unplaced_lines(self) -> Unplaced | None:
        """Return the lines that are named like quota metrics but could not be read; None without any."""
        if not self._unplaced:
            return None
        key, (labels, reason) = next(iter(self._unplaced.items()))
        count, expected = len(self._unplaced), self._dialect.labels
        return Unplaced(count=count, example=text_of(key), labels=labels, expected=expected, reason=reason)

    def labels_of_page(self) -> tuple[str, ...]:
        """
        Return the labels that could be tags of a custom quota callback, but have one value on all lines of clients.

        With several values, or if a line of a client lacked them, they would be tags.
        """
        return tuple(sorted(filter(self._is_tag, (self._client_labels or frozenset()) - self._tags)))

    def keep_only(self, present: Iterable[SampleKey]) -> None:
        """Keep what is known of ``present`` lines, and forget all other lines and the beans of the page."""
        self._forms.forget_beans()
        if self._unplaced:
            present_keys = set(present)
            self._unplaced = {key: unplaced for key, unplaced in self._unplaced.items() if key in present_keys}

    def _check_labels_of_rule(self, name: str, bean: Bean, labels: frozenset[str], key: SampleKey) -> None:
        """
        Refuse the page if some of the lines that one rule makes have a label and others have not.

        Such a label distinguishes series, as a label with several values does.
        """
        keys = {tag for tag, _ in bean.properties}
        rule = name, bean.get("type"), "user" in keys, "client-id" in keys
        first_labels, earlier_key = self._labels_by_rule.setdefault(rule, (labels, key))
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
            f"{shown(text_of(earlier_key))} and {shown(text_of(key))}. {advice}"
        )

    def _check_value(self, label: str, value: str, key: SampleKey, *, of_node: bool, whole: bool = False) -> None:
        """
        Refuse the page if a label has several values, unless it can be a tag of a custom quota callback.

        Args:
            label: A label without a meaning.
            value: Its value on the line.
            key: The line.
            of_node: Whether the line is about the node.
            whole: Whether the labels of the line are all key properties of a bean.

        """
        first = self._first_values.setdefault(label, _FirstValue(value, key))
        if first.value == value:
            return
        of_scrape = is_scrape_label(label)
        can_be_tag = (not of_scrape) if of_node else (whole and self._can_be_tag(label))
        if can_be_tag:
            self._become_tags({label}, replanned=True)  # which raises `Replanned`
        first_text, second_text = shown(text_of(first.key)), shown(text_of(key))
        if of_scrape:
            whose = "brokers" if is_node_label(label) else "brokers or clusters"
            raise SourceUnreadable(
                f"the page has series of several {whose}: {first_text} and {second_text} differ in the label "
                f"{shown(label)}. Give quotascope the agent of each broker instead of a page that joins them "
                "(/federate, or one exporter for several brokers)"
            )
        raise SourceUnreadable(
            f"the label {shown(label)} tells series apart, but Kafka's quotas have nothing of that name: "
            f"{first_text} and {second_text}. "
            "Remove it from the agent's rules, or use the rules that `quotascope rules jmx-exporter` writes"
        )

    def _recipe(self, name: str, labels: tuple[str, ...]) -> _Recipe:
        """Return the recipe for lines with a name and labels. Raises ``Replanned``."""
        if known_labels := own_labels(name):  # a metric that quotascope's rules make
            meaningless = tuple(label for label in labels if label not in known_labels)
            return _Recipe(partial(self._own_column, name), meaningless, plan=own_plan(name, labels))
        parsed = quota_name(name)
        roles = roles_of(labels)
        if Role.OBJECT_NAME in roles:  # one label names the whole bean
            column = partial(_by_object_name, roles[Role.OBJECT_NAME])
            if parsed is None:
                return _Recipe(column, self._meaningless_of_node(labels), of_node=True)
            named_labels = roles.values()
            meaningless = tuple(label for label in labels if label not in named_labels)
            return _Recipe(column, meaningless, factor=parsed.factor)
        if parsed is not None and _can_be_quota(parsed, roles):
            whole = self._dialect.whole and self._dialect.names_whole(name, labels)
            return self._quota_recipe(parsed, roles, labels, whole=whole)
        # not about a client's quota, so perhaps about the node
        meaningless = self._meaningless_of_node(labels)
        return _Recipe(partial(self._node_column, name, frozenset(meaningless)), meaningless, of_node=True)

    def _own_column(self, name: str, labels: Mapping[str, str]) -> BeanColumn | None:
        """Return the column of a line that is made by rules of `quotascope rules jmx-exporter`."""
        column = own_column(name, labels)
        if column is not None:
            factor = own_factor(column)
            if factor != 1.0:
                self.factors[column] = factor
        return column

    def _meaningless_of_node(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return the labels of a line about a node that neither are tags nor distinguish such lines."""
        return tuple(
            label for label in labels if label not in self._tags and squeezed(label) not in _NODE_SERIES_LABELS
        )

    def _node_column(self, name: str, ignored: frozenset[str], labels: Mapping[str, str]) -> BeanColumn | None:
        """Return the column of a line about a node, without ``ignored`` labels; None if the dialect has none."""
        if ignored:
            labels = {label: value for label, value in labels.items() if label not in ignored}
        return self._dialect.node_column_of(name, labels)

    def _quota_recipe(
        self, parsed: QuotaName, roles: dict[Role, str], labels: tuple[str, ...], *, whole: bool
    ) -> _Recipe:
        """
        Return the recipe for lines about quotas. Raises ``Replanned``.

        Args:
            parsed: The meaning of their name.
            roles: Labels by their role.
            labels: All labels.
            whole: Whether the labels are all key properties of a bean.

        """
        if parsed.ending:
            return _Recipe(partial(_refuse_ending, parsed.ending))
        # the labels that hold the parts of a bean's name, and the key property that each of them holds
        type_label = roles.get(Role.TYPE)
        has_client = not roles.keys().isdisjoint({Role.USER, Role.CLIENT_ID})
        if type_label and parsed.type and whole and not has_client:
            type_label = None  # such as `quota.type`, a tag of Strimzi's quotas plugin
        attribute_label = None if parsed.attribute else roles.get(Role.ATTRIBUTE)
        pairs = [(roles[role], role.value) for role in (Role.USER, Role.CLIENT_ID) if role in roles]
        known_labels = {label for label, _ in pairs}
        known_labels |= {label for label in (type_label, attribute_label) if label}
        if parsed.type == APP_INFO:
            known_labels |= {label for label in labels if squeezed(label) in {"id", "version", "commitid"}}
            return _Recipe(partial(_app_info, roles), tuple(label for label in labels if label not in known_labels))
        if type_label:
            pairs.insert(0, (type_label, Role.TYPE.value))  # the order of the names of Kafka's MBeans
        # all other labels are tags of a custom quota callback, or have no meaning
        remaining = tuple(label for label in labels if label not in known_labels)
        tags = tuple(label for label in remaining if whole and self._is_tag(label))
        if whole and has_client:
            tags = self._tags_of_client(remaining, tags)
        elif tags and parsed.attribute in _ENTITY_ATTRIBUTES:  # an entity of a callback, by its tags alone
            new_tags = {*tags} - self._tags
            self._become_tags(new_tags, replanned=not new_tags.isdisjoint(self._client_labels or ()))
        return _Recipe(
            column=partial(self._quota_column, parsed, tuple(pairs), tags, attribute_label, whole),
            meaningless_labels=tuple(label for label in remaining if label not in tags),
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
        """
        Return the plan by which labels become a bean; None if two labels are the same key property.

        Args:
            group: The type that the name shows; empty if only a label can show it.
            pairs: Labels with a role, with the key property that they hold.
            tags: Labels that are tags of a custom quota callback.
            attribute_label: The label of the attribute; None if the name shows it.
            whole: Whether the labels are all key properties of a bean.

        """
        label_of_key = {key: label for label, key in pairs} | {tag: tag for tag in tags}
        if len(label_of_key) < len(pairs) + len(tags) or Role.TYPE.value in tags:
            return None
        return Plan(
            labels={key: label for key, label in label_of_key.items() if key != Role.TYPE.value},
            type_of=partial(_type_of, group),
            type_label=label_of_key.get(Role.TYPE.value, ""),
            attribute_label=attribute_label or "",
            one_by_one=whole or not self._dialect.quoted,
            types=group,
        )

    def _tags_of_client(self, labels: tuple[str, ...], tags: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return the labels of a client's line that are tags.

        A label that all lines of clients have with one value is a label of the page. Raises ``Replanned``.

        Args:
            labels: The labels of the line without a role.
            tags: The labels of the line that can be tags.

        """
        common_before = self._client_labels
        self._client_labels = frozenset(labels) if common_before is None else common_before & frozenset(labels)
        if common_before is not None:
            # labels that this line or an earlier one lacks, so that they distinguish lines
            new_tags = (common_before | {*tags}) - self._client_labels - self._tags
            self._become_tags(set(filter(self._is_tag, new_tags)), replanned=True)
        return tuple(label for label in tags if label in self._tags)

    def _become_tags(self, labels: set[str], *, replanned: bool) -> None:
        """Take labels for tags from now on. Raises ``Replanned`` if lines were read before without these tags."""
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
        return label in self._tags or (label not in self._page_labels and self._can_be_tag(label))

    def _can_be_tag(self, label: str) -> bool:
        """Return whether the name of a label is no name of a statistic, nor of a scrape label of a page of clients."""
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
        """
        Return the column of a line about quotas; None if it is about other MBeans. Raises ``_NotPlaced``.

        Args:
            parsed: The meaning of its name.
            pairs: Labels with a role, with the key property that they hold.
            tags: Labels that are tags of a custom quota callback.
            attribute_label: The label of the attribute; None if the name shows it.
            whole: Whether the labels are all key properties of a bean.
            labels: The labels with their values.

        """
        texts = {key: labels[label] for label, key in pairs if labels[label]}
        texts |= {tag: labels[tag] for tag in tags if labels[tag]}
        try:
            properties = self._unquoted(texts, whole=whole)
        except MalformedName:
            # a greedy rule of quota metrics takes other MBeans, too, and puts their further properties into the type
            first_type = texts.get("type", "").partition(", ")[0]
            if first_type and group_of(first_type) is None and _OTHER_TYPE.fullmatch(squeezed(first_type)):
                return None
            raise _NotPlaced("its values are not quoted as in the name of an MBean") from None
        attribute, factor = parsed.attribute, 1.0
        if attribute_label:
            attribute_and_factor = attribute_of_text(labels[attribute_label])
            if attribute_and_factor is None:
                return None
            attribute, factor = attribute_and_factor
        group = self._group(parsed, pairs, properties.pop("type", None))
        if group is None:
            return None
        if not group:
            raise _NotPlaced("neither its name nor a label has the quota type")
        if group == APP_INFO:
            return _app_info_column(properties.get("client-id", "")) if attribute == "start-time-ms" else None
        if not properties and attribute in _ENTITY_ATTRIBUTES and not whole:
            # Kafka measures clients without names like this, but a rule that loses names shows any client like this
            raise _NotPlaced("it has no label for a user or a client-id")
        column = self._mapped_column(properties | {"type": group}, attribute)
        if factor != 1.0 and column is not None:
            self.factors[column] = factor
        return column

    def _mapped_column(self, properties: Mapping[str, str], attribute: str) -> BeanColumn | None:
        """Return the column of a bean with its meaning; None if it is not used."""
        column = BeanColumn(Bean.of(SERVER, properties), attribute)
        shape = (properties["type"], attribute, *properties)
        if shape not in self._mapped:
            self._mapped[shape] = attribute_of(column)
        mapped = self._mapped[shape]
        return None if mapped is None else BeanColumn(column.bean, attribute, mapped)

    def _group(self, parsed: QuotaName, pairs: Iterable[tuple[str, str]], text: str | None) -> str | None:
        """
        Return the type of a line's bean; None for the type of other MBeans, empty if it is unknown.

        Raises ``_NotPlaced``.

        Args:
            parsed: The meaning of the line's name.
            pairs: Labels with a role, with the key property that they hold.
            text: The value of the label of the type; None without one.

        """
        if text is None:
            return parsed.type
        group = group_of(text)
        if group is None and parsed.type:  # the label has another meaning
            label = next((label for label, key in pairs if key == "type"), "type")
            self._check_value(label, text, self._key, of_node=False)
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
        # rules cut the name of a bean at its commas, perhaps in the wrong places: joined, it is the name again
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
        return 1.0  # a short key that stands for a long one, whose labels it does not have
    if own_labels(name):
        column = own_column(name, labels)
        return 1.0 if column is None else own_factor(column)
    label = roles_of(tuple(labels)).get(Role.ATTRIBUTE)
    attribute_and_factor = attribute_of_text(labels[label]) if label else None
    return attribute_and_factor[1] if attribute_and_factor else 1.0


def _type_of(group: str, text: str) -> str | None:
    """
    Return the type of a bean; None if it is not about quotas, or if name and label contradict each other.

    Args:
        group: The type that the name shows; empty if only a label can show it.
        text: The value of the type label; empty without such a label.

    """
    type_in_label = group_of(text) if text else group
    if not type_in_label or type_in_label == APP_INFO:
        return None
    return type_in_label if group in {"", type_in_label} else None


def _refuse_ending(ending: str, _labels: Mapping[str, str]) -> BeanColumn | None:
    """Raise ``_NotPlaced`` for a quota metric whose name has an ending after Kafka's attribute."""
    raise _NotPlaced(f"{shown(ending)} at the end of its name is no unit of Kafka's quota metrics")


def _by_object_name(label: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """
    Return the column that a label of jmx_exporter names; None if it is not used.

    The value of the label is such as ``kafka.server<type=Produce, user=a><>byte-rate``. Raises ``_NotPlaced``.
    """
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
    attribute = text_of_bean[position + 2 :].rpartition(">")[2]  # keys of a composite value may stand before it
    return wanted(BeanColumn(Bean.of(domain, properties), attribute))


def _parsed(key: SampleKey) -> tuple[str, dict[str, str]]:
    """Return name and labels of a line without the labels of a Collector. Raises ``SourceUnreadable``."""
    name, labels = _parse(key)
    if _SCOPE in key:
        labels = {label: value for label, value in labels.items() if not label.startswith(_SCOPE)}
    return name, labels


def _parse(key: SampleKey) -> tuple[str, dict[str, str]]:
    """Return name and all labels of a line. Raises ``SourceUnreadable``."""
    text = text_of(key)
    try:
        return parse_series(text)
    except ValueError as error:
        raise SourceUnreadable(f"the answer is not Prometheus text: {error} ({shown(text)})") from None


def _can_be_quota(parsed: QuotaName, roles: Mapping[Role, str]) -> bool:
    """Return whether a line is about quotas, by its name, or by its labels if the name does not show it."""
    if parsed.certain:
        return True
    has_client = not roles.keys().isdisjoint({Role.USER, Role.CLIENT_ID})
    has_attribute = bool(parsed.attribute or parsed.ending) or Role.ATTRIBUTE in roles
    has_type = bool(parsed.type) or Role.TYPE in roles
    return has_client and has_attribute and has_type


def _without_quotes(text: str) -> str:
    """
    Return a value without the escapes of Java, from a text whose quotes the pattern of a rule left out.

    Raises ``MalformedName``.
    """
    if not _CONTENT.fullmatch(text) or _CUT.search(text):
        raise MalformedName(text, "a badly quoted value")
    return unquote_tag_value(f'"{text}"')


def _app_info(roles: Mapping[Role, str], labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a node's start time, whose node id may be in the label of a client-id; None for others."""
    type_label, client_label = roles.get(Role.TYPE), roles.get(Role.CLIENT_ID)
    if type_label and group_of(labels[type_label]) != APP_INFO:
        return None
    node_id = labels.get("id", "")
    if not node_id and client_label:
        node_id = labels.get(client_label, "")
    return _app_info_column(node_id)


def _app_info_column(node_id: str) -> BeanColumn | None:
    """Return the column of a node's start time, whose bean is named after the node; None without an id."""
    bean = Bean.of(SERVER, {"type": APP_INFO, "id": node_id})
    return wanted(BeanColumn(bean, "StartTimeMs")) if node_id else None
