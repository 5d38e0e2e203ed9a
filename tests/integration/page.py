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
        """Yield the samples of this name that have all of these labels."""
        for sample in self.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                yield sample

    def sample(self, name: str, **labels: str) -> Sample:
        """Return the one sample; assert that there is just one."""
        matching = list(self.series(name, **labels))
        same_name = [str(sample.labels) for sample in self.samples if sample.name == name]
        assert len(matching) == 1, f"{name} {labels}: {matching or same_name or 'no such name'}"
        return matching[0]

    def value(self, name: str, **labels: str) -> float:
        return self.sample(name, **labels).value

    def labels(self, name: str, **labels: str) -> Mapping[str, str]:
        return self.sample(name, **labels).labels

    def get(self, name: str, **labels: str) -> float | None:
        """Return the value of the one sample, or None when there is none."""
        return self.value(name, **labels) if any(self.series(name, **labels)) else None

    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}
