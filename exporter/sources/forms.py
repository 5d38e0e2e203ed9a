"""
Reads lines by their form. Lines of one form have the same name and labels, and differ in the values alone.

Most lines of a page have one of a few forms. The first line of each kind is read in full (`PageLines`). Of the other
lines, only the values are looked up, at their places in the line. A bean that several lines have is made once. A line
with an escape, or with a value that must be interpreted, is always read in full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from ..mapping import SERVER, Attribute, Bean, BeanColumn
from ..names import is_plain
from .text_format import SampleKey

Parts: TypeAlias = list[str]
"""A series split at its quotes: name, labels and punctuation at even indexes, values at odd ones."""
Shape: TypeAlias = tuple[str, ...]
"""A series without its values: the parts at even indexes."""

_TYPE: Final = "type"
_MOST_TYPES: Final = 64
"""Most values of a type label that are remembered; Kafka's quotas have four."""
_MOST_FORMS: Final = 4096
"""Most forms that are remembered; an agent has some dozens, unless a rule puts names of clients into metric names."""
_MOST_KINDS: Final = 256
"""Most kinds of lines of one form; an agent has a dozen."""


class Plan(NamedTuple):
    """The plan by which the labels of a line become an MBean about quotas."""

    labels: Mapping[str, str]
    """Labels by the key property of the bean that they hold, except the label of the type."""
    type_of: Callable[[str], str | None]
    """Function from the value of ``type_label`` to the bean's type; None if the line must be read in full."""
    type_label: str = ""
    """The label of the type. If it is empty, there is no such label, and ``type_of`` gets an empty value."""
    attribute_label: str = ""
    """The label that names the attribute; empty if the metric's name does."""
    keeps_empty: bool = False
    """True if a label without a value is a key property like others."""
    one_by_one: bool = True
    """True if each value is a text of its own. False if a rule cut the values from one text at its commas."""
    types: Hashable = None
    """Key of ``type_of``, which is equal for plans with the same types."""

    @property
    def identity(self) -> Hashable:
        """Key of the plan, which is equal for plans that make the same beans from the same values."""
        return tuple(self.labels.items()), self.type_label, self.keeps_empty, self.one_by_one, self.types


class _Kind(NamedTuple):
    """The meaning of the lines of one form with the same type, attribute and key properties."""

    attribute: str
    mapped: Attribute
    factor: float
    """Factor from the number of a line to Kafka's unit."""


class _Beans:
    """The beans of one page by the values of their labels, for all forms whose plans have the same identity."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._keys = tuple(sorted((*plan.labels, _TYPE)))
        """Keys of the properties of a bean, in the order of the bean."""
        self._type_index = self._keys.index(_TYPE)
        labels = {**plan.labels, _TYPE: plan.type_label}
        self.labels = tuple(labels[key] for key in self._keys if labels[key])
        """The labels whose values name a bean, in the order of its properties."""
        self._types: dict[str, str | None] = {}
        self.by_values: dict[tuple[str, ...], tuple[Bean, Hashable]] = {}
        """Beans and their kinds by the values of `labels`. Lines of one kind have the same type and key properties."""

    def add(self, values: tuple[str, ...]) -> tuple[Bean, Hashable] | None:
        """Make the bean with these values, and return it with its kind; None if the line must be read in full."""
        text = "".join(values)
        if not is_plain(text) or (", " in text and not self._plan.one_by_one):
            return None
        index = self._type_index
        type_text = values[index] if self._plan.type_label else ""
        group = self._types[type_text] if type_text in self._types else self._type_of(type_text)
        if group is None:
            return None
        # the values of the bean's properties: the type takes the place of its label's value, or is added
        properties = values
        if group != type_text:
            rest = values[index + 1 :] if self._plan.type_label else values[index:]
            properties = (*values[:index], group, *rest)
        pairs = tuple(zip(self._keys, properties, strict=True))
        kind: Hashable = group
        if "" in properties and not self._plan.keeps_empty:  # the bean lacks these properties, so its kind is another
            pairs = tuple((key, value) for key, value in pairs if value)
            kind = group, *(key for key, _ in pairs)
        bean: Bean = tuple.__new__(Bean, (SERVER, pairs))  # faster than Bean(): a first page has tens of thousands
        self.by_values[values] = bean, kind
        return bean, kind

    def _type_of(self, text: str) -> str | None:
        """Return the type that a value of the type label names, and remember it."""
        group = self._plan.type_of(text)
        if len(self._types) < _MOST_TYPES:
            self._types[text] = group
        return group


class _Form:
    """
    Reads the lines of one form.

    Args:
        beans: The beans by the values of their labels.
        indexes: The index of the value of each label among the parts of a line.
        meaning: The meaning of the lines, as learned from the first one.

    """

    def __init__(self, beans: _Beans, indexes: Mapping[str, int], meaning: FormMeaning) -> None:
        self.beans = beans
        self.by_values = beans.by_values
        self.values_of = _values_at(tuple(indexes[label] for label in beans.labels))
        """Function from the parts of a line to the values that name its bean."""
        self.attributes: dict[Hashable, tuple[str, Attribute]] = {}
        """Attribute and its meaning by the kind of a bean, if the numbers are in Kafka's units."""
        self._attribute_index = indexes.get(meaning.plan.attribute_label, 0)
        """Index of the value that names the attribute; 0 if the metric's name does."""
        self._ignored = tuple((indexes[label], value) for label, value in meaning.ignored.items())
        self._on_scaled = meaning.on_scaled
        self._kinds: dict[Hashable, _Kind] = {}
        self.is_simple = not self._attribute_index and not self._ignored
        """True if the values that name its bean are all that distinguishes a line."""

    def column(self, parts: Parts) -> BeanColumn | None:
        """Return the column of a line; None if the line must be read in full."""
        for index, value in self._ignored:
            if parts[index] != value:
                return None
        values = self.values_of(parts)
        bean_and_kind = self.by_values.get(values) or self.beans.add(values)
        if bean_and_kind is None:
            return None
        bean, kind_of_bean = bean_and_kind
        kind = self._kinds.get(self._key(parts, kind_of_bean))
        if kind is None:
            return None
        column = BeanColumn(bean, kind.attribute, kind.mapped)
        if kind.factor != 1.0:
            self._on_scaled(column, kind.factor)
        return column

    def learn(self, parts: Parts, column: BeanColumn, factor: float) -> None:
        """
        Remember the meaning of a line for all lines of its kind.

        Args:
            parts: The parts of the line.
            column: The column of the line, as read in full.
            factor: Factor from the number of the line to Kafka's unit.

        """
        values = self.values_of(parts)
        bean_and_kind = self.by_values.get(values) or self.beans.add(values)
        if bean_and_kind is None or len(self._kinds) >= _MOST_KINDS:
            return
        bean, kind_of_bean = bean_and_kind
        if bean != column.bean or column.mapped is None:  # the plan does not lead to the bean that reading in full did
            return
        self._kinds[self._key(parts, kind_of_bean)] = _Kind(column.attribute, column.mapped, factor)
        if self.is_simple and factor == 1.0:
            self.attributes[kind_of_bean] = column.attribute, column.mapped

    def _key(self, parts: Parts, kind_of_bean: Hashable) -> Hashable:
        """Return the key of a line's kind: the kind of its bean, and its attribute if a label names it."""
        return (kind_of_bean, parts[self._attribute_index]) if self._attribute_index else kind_of_bean


def _values_at(indexes: tuple[int, ...]) -> Callable[[Parts], tuple[str, ...]]:
    """Return a function that returns the parts at the indexes."""
    if len(indexes) > 1:
        return itemgetter(*indexes)
    return lambda parts: tuple(parts[index] for index in indexes)


class FormMeaning(NamedTuple):
    """The meaning of the lines of a form, as learned by reading one line in full."""

    labels: Iterable[str]
    """Labels in the order of the line."""
    plan: Plan
    ignored: Mapping[str, str]
    """Labels without a meaning, and their value, which is the same on the whole page."""
    on_scaled: Callable[[BeanColumn, float], None]
    """Callback for a column with numbers that are not in Kafka's units, with the factor that converts them."""


class Forms:
    """
    Reads series by their forms.

    Args:
        read_in_full: Function that returns the column of a series, None if it has none.
        meaning_of: Function that returns the meaning of the form of a series that was read in full; None if the series
            of this form must all be read in full.
        factor_of: Function that returns the factor from the number of a series to Kafka's unit.

    """

    def __init__(
        self,
        read_in_full: Callable[[SampleKey], BeanColumn | None],
        meaning_of: Callable[[SampleKey], FormMeaning | None],
        factor_of: Callable[[SampleKey], float],
    ) -> None:
        self._read_in_full, self._meaning_of, self._factor_of = read_in_full, meaning_of, factor_of
        self._forms: dict[Shape, _Form] = {}
        self._beans: dict[Hashable, _Beans] = {}

    def clear(self) -> None:
        """Forget all forms, because labels have another meaning from now on."""
        self._forms.clear()
        self._beans.clear()

    def forget_beans(self) -> None:
        """Forget the beans of the page that was read."""
        for beans in self._beans.values():
            beans.by_values.clear()

    def columns_of(self, keys: Iterable[SampleKey]) -> list[list[BeanColumn | None]]:
        """
        Return the column of each series in a list of its own.

        Raises the exceptions of ``read_in_full``.
        """
        columns: list[list[BeanColumn | None]] = []
        add, forms, new = columns.append, self._forms, tuple.__new__
        for key in keys:
            parts = key.split('"')
            form = forms.get(tuple(parts[::2]))
            if form is None or "\\" in key:
                add([self._learn(key, parts)])
            elif form.is_simple:
                # half of all lines: the steps of `_Form.column` without its calls, and without `__new__` in Python
                values = form.values_of(parts)
                bean_and_kind = form.by_values.get(values) or form.beans.add(values)
                if bean_and_kind is not None and (attribute := form.attributes.get(bean_and_kind[1])):
                    add([new(BeanColumn, (bean_and_kind[0], *attribute))])
                else:
                    add([form.column(parts) or self._learn(key, parts)])
            else:
                add([form.column(parts) or self._learn(key, parts)])
        return columns

    def _learn(self, key: SampleKey, parts: Parts) -> BeanColumn | None:
        """Read a series in full and return its column, and remember how to read the series of its form."""
        column = self._read_in_full(key)
        if column is None or len(parts) == 1 or "\\" in key:
            return column
        shape = tuple(parts[::2])
        form = self._forms.get(shape)
        if form is None:
            meaning = self._meaning_of(key)
            if meaning is None:
                return column
            indexes = {label: 2 * number + 1 for number, label in enumerate(meaning.labels)}
            if len(parts) != 2 * len(indexes) + 1:  # the parts are not one value for each label
                return column
            beans = self._beans.setdefault(meaning.plan.identity, _Beans(meaning.plan))
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            form = self._forms[shape] = _Form(beans, indexes, meaning)
        form.learn(parts, column, self._factor_of(key))
        return column
