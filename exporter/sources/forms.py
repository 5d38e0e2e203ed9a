"""
Lines of one form: one name and the same labels, written alike, which differ in nothing but the values.

Most lines of a page are of a few forms. One line of each kind is read in full (`PageLines`); of the others, the values
are looked up where they stand, and entities that stand in several lines are made once. A line with an escape, or with a
value that is not taken as it is, is always read in full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from ..mapping import SERVER, Attribute, Bean, BeanColumn
from ..names import is_plain
from .text_format import SampleKey

Parts: TypeAlias = list[str]
"""A series divided at its quotes: name, labels and signs between them at even places, values at odd ones."""
Shape: TypeAlias = tuple[str, ...]
"""All of a series but the values: the parts at even places."""

_TYPE: Final = "type"
_MOST_TYPES: Final = 64
"""Values of a label for the type that are remembered; Kafka's quotas have four."""
_MOST_FORMS: Final = 4096
"""Forms that are remembered; agents have some dozens, but a rule may put names of clients into those of metrics."""
_MOST_KINDS: Final = 256
"""Kinds of lines of one form; an agent makes a dozen."""


class Plan(NamedTuple):
    """How the labels of lines become an MBean about quotas."""

    labels: Mapping[str, str]
    """Labels by the key property of the bean that each holds, except its type."""
    type_of: Callable[[str], str | None]
    """Function from the value of ``type_label`` to the bean's type; None where a line is to be read in full."""
    type_label: str = ""
    """The label of the type; empty if there is none, and then the type is that of an empty value."""
    attribute_label: str = ""
    """The label that names the attribute; empty where the metric's name does."""
    keeps_empty: bool = False
    """True if a label without a value is a key property as others are."""
    one_by_one: bool = True
    """True if the values of labels are not cut out of one text, in which a comma would end one."""
    types: Hashable = None
    """Name of ``type_of``: equal for plans that give the same types."""

    @property
    def identity(self) -> Hashable:
        """Return a key that is equal for plans that make the same beans from the same values."""
        return tuple(self.labels.items()), self.type_label, self.keeps_empty, self.one_by_one, self.types


class _Kind(NamedTuple):
    """The meaning of lines of one form with one type, attribute and key properties."""

    attribute: str
    mapped: Attribute
    factor: float


class _Beans:
    """The beans of one page by the values of their labels, for all forms whose labels mean the same."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._keys = tuple(sorted((*plan.labels, _TYPE)))
        self._place = self._keys.index(_TYPE)
        labels = {**plan.labels, _TYPE: plan.type_label}
        self.labels = tuple(label for key in self._keys if (label := labels[key]))
        """The labels whose values name a bean, in the order of these values."""
        self._types: dict[str, str | None] = {}
        self.by_values: dict[tuple[str, ...], tuple[Bean, Hashable]] = {}
        """Each bean with its kind, by the values of `labels`."""

    def add(self, values: tuple[str, ...]) -> tuple[Bean, Hashable] | None:
        """Return the bean with these values, and its kind; None where a line is to be read in full."""
        text = "".join(values)
        if not is_plain(text) or (", " in text and not self._plan.one_by_one):
            return None
        place = self._place
        type_text = values[place] if self._plan.type_label else ""
        group = self._types[type_text] if type_text in self._types else self._type_of(type_text)
        if group is None:
            return None
        if group != type_text:
            end = place + bool(self._plan.type_label)
            properties = (*values[:place], group, *values[end:])
        else:
            properties = values
        pairs = tuple(zip(self._keys, properties, strict=True))
        kind: Hashable = group
        if "" in properties and not self._plan.keeps_empty:
            pairs = tuple(pair for pair in pairs if pair[1])
            kind = group, *(key for key, _ in pairs)
        bean_and_kind = self.by_values[values] = tuple.__new__(Bean, (SERVER, pairs)), kind
        return bean_and_kind

    def _type_of(self, text: str) -> str | None:
        group = self._plan.type_of(text)
        if len(self._types) < _MOST_TYPES:
            self._types[text] = group
        return group


class _Form:
    """
    Lines of one form.

    Args:
        beans: The beans by the values of their labels.
        places: The place of the value of each label among the parts.
        line: The meaning of the first of these lines.

    """

    def __init__(self, beans: _Beans, places: Mapping[str, int], line: Understood) -> None:
        self.beans = beans
        self.by_values = beans.by_values
        self.values_of = _values_at(tuple(places[label] for label in beans.labels))
        self.kinds: dict[Hashable, tuple[str, Attribute]] = {}
        """Attribute and meaning by the kind of a bean; only of numbers that are in Kafka's units."""
        self._attribute_place = places.get(line.plan.attribute_label, 0)
        self._ignored = tuple((places[label], value) for label, value in line.ignored.items())
        self._scaled = line.scaled
        self._kinds: dict[Hashable, _Kind] = {}
        self.is_simple = not self._attribute_place and not self._ignored

    def column(self, parts: Parts) -> BeanColumn | None:
        """Return the column of a line, None where it is to be read in full."""
        for place, value in self._ignored:
            if parts[place] != value:
                return None
        values = self.values_of(parts)
        bean_and_kind = self.by_values.get(values) or self.beans.add(values)
        if bean_and_kind is None:
            return None
        kind = self._kinds.get(self._key(parts, bean_and_kind[1]))
        if kind is None:
            return None
        column = BeanColumn(bean_and_kind[0], kind.attribute, kind.mapped)
        if kind.factor != 1.0:
            self._scaled(column, kind.factor)
        return column

    def learn(self, parts: Parts, column: BeanColumn, factor: float) -> None:
        """Remember the meaning of lines of the same kind as this line."""
        values = self.values_of(parts)
        bean_and_kind = self.by_values.get(values) or self.beans.add(values)
        if bean_and_kind is None or bean_and_kind[0] != column.bean or column.mapped is None:
            return
        if len(self._kinds) >= _MOST_KINDS:
            return
        self._kinds[self._key(parts, bean_and_kind[1])] = _Kind(column.attribute, column.mapped, factor)
        if self.is_simple and factor == 1.0:
            self.kinds[bean_and_kind[1]] = column.attribute, column.mapped

    def _key(self, parts: Parts, kind: Hashable) -> Hashable:
        return (kind, parts[self._attribute_place]) if self._attribute_place else kind


def _values_at(places: tuple[int, ...]) -> Callable[[Parts], tuple[str, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda parts: tuple(parts[place] for place in places)


class Understood(NamedTuple):
    """What reading a line in full showed about all lines of its form."""

    labels: Iterable[str]
    """Labels in the order of the line."""
    plan: Plan
    ignored: Mapping[str, str]
    """Labels without a meaning, and the one value that each has on the whole page."""
    scaled: Callable[[BeanColumn, float], None]
    """Callback for each column whose numbers are not in Kafka's units, with the factor that converts them."""


class Forms:
    """
    Reads series by their forms.

    Args:
        in_full: Reads one series.
        understood: Tells how lines like a series that was read are read; None where each is to be read in full.
        factor_of: The factor that makes the number of a series Kafka's.

    """

    def __init__(
        self,
        in_full: Callable[[SampleKey], BeanColumn | None],
        understood: Callable[[SampleKey], Understood | None],
        factor_of: Callable[[SampleKey], float],
    ) -> None:
        self._in_full, self._understood, self._factor_of = in_full, understood, factor_of
        self._forms: dict[Shape, _Form] = {}
        self._beans: dict[Hashable, _Beans] = {}

    def clear(self) -> None:
        """Forget all forms, because their labels have another meaning from now on."""
        self._forms.clear()
        self._beans.clear()

    def forget(self) -> None:
        """Drop the beans of the page that was read."""
        for beans in self._beans.values():
            beans.by_values.clear()

    def columns_of(self, keys: Iterable[SampleKey]) -> list[list[BeanColumn | None]]:
        """Return a list with the column of each series. Raises what reading one in full raises."""
        columns: list[list[BeanColumn | None]] = []
        add, forms, new = columns.append, self._forms, tuple.__new__
        for key in keys:
            parts = key.split('"')
            form = forms.get(tuple(parts[::2]))
            if form is None or "\\" in key:
                add([self._learned(key, parts)])
            elif form.is_simple:
                values = form.values_of(parts)
                bean_and_kind = form.by_values.get(values) or form.beans.add(values)
                if bean_and_kind is not None and (kind := form.kinds.get(bean_and_kind[1])):
                    # skips what `__new__` of a named tuple does in Python, for half of all lines
                    add([new(BeanColumn, (bean_and_kind[0], *kind))])
                else:
                    add([form.column(parts) or self._learned(key, parts)])
            else:
                add([form.column(parts) or self._learned(key, parts)])
        return columns

    def _learned(self, key: SampleKey, parts: Parts) -> BeanColumn | None:
        """Read a series in full, and remember how to read lines of its form."""
        column = self._in_full(key)
        if column is None or len(parts) == 1 or "\\" in key:
            return column
        shape = tuple(parts[::2])
        form = self._forms.get(shape)
        if form is None:
            line = self._understood(key)
            places = {label: 2 * number + 1 for number, label in enumerate(line.labels if line else ())}
            if line is None or len(parts) != 2 * len(places) + 1:
                return column
            beans = self._beans.setdefault(line.plan.identity, _Beans(line.plan))
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            form = self._forms[shape] = _Form(beans, places, line)
        form.learn(parts, column, self._factor_of(key))
        return column
