"""The tables of docs/spark-*.md are those of the code."""

from pathlib import Path

from quotascope.metrics.catalog import Family, FamilyType, job_families
from quotascope.spark_listener.events import FailureCause

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, begin: str) -> list[str]:
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith(begin)]


def row(family: Family) -> str:
    """What the page shows: all families have the label `app`, and the name gives the type."""
    total = "_total" if family.type is FamilyType.COUNTER else ""
    labels = ", ".join(f"`{label}`" for label in family.labels if label != "app")
    name = family.name.removesuffix(total) + total
    return f"- `{name}`{f' ({labels})' if labels else ''}: {family.help}"


def test_every_family_is_documented() -> None:
    """As Prometheus shows it, in the order of the catalog."""
    families = tuple(job_families())
    assert rows("spark-metrics.md", "- `spark_") == [*map(row, families)]
    assert all("app" in each.labels for each in families)
    assert {each.type for each in families} == {FamilyType.COUNTER, FamilyType.GAUGE}


def test_every_cause_is_documented() -> None:
    """In the order of their evidence."""
    documented = [line.split("`")[1] for line in rows("spark-report.md", "- `")]
    assert documented == [cause.value for cause in FailureCause]
