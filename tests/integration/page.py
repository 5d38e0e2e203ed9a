"""An exposition as a test reads it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample


@dataclass(frozen=True, slots=True)
class Page:
    """The samples of one scrape, parsed by prometheus_client."""

    text: str
    samples: tuple[Sample, ...]

    @classmethod
    def of(cls, text: str, *, openmetrics: bool = False) -> "Page":
        """Parse a text; an error of form is a ValueError."""
        parse = parse_openmetrics if openmetrics else parse_text
        families = parse(text)
        return cls(text, tuple(sample for family in families for sample in family.samples))

    def series(self, name: str, **labels: str) -> Iterator[Sample]:
        """The samples of this name that have all of these labels."""
        for sample in self.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                yield sample

    def value(self, name: str, **labels: str) -> float:
        """The one value; an assertion that there is just one."""
        found = list(self.series(name, **labels))
        assert len(found) == 1, f"{name} {labels}: {found or self._near(name)}"
        return found[0].value

    def get(self, name: str, **labels: str) -> float | None:
        """The one value, or None when there is no such sample."""
        found = list(self.series(name, **labels))
        assert len(found) <= 1, f"{name} {labels}: {found}"
        return found[0].value if found else None

    def labels(self, name: str, **labels: str) -> Mapping[str, str]:
        """All labels of the one sample."""
        found = list(self.series(name, **labels))
        assert len(found) == 1, f"{name} {labels}: {found or self._near(name)}"
        return found[0].labels

    def names(self) -> set[str]:
        """The names of all samples."""
        return {sample.name for sample in self.samples}

    def _near(self, name: str) -> str:
        others = [str(sample.labels) for sample in self.samples if sample.name == name]
        return "there is only " + ("\n".join(others) or "no such name")
