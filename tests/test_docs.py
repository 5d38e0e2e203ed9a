"""The generated pages in docs/ are what the code would write, and the site of docs/ has no dead link."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
NO_PRODUCT = {"benchmarks", "tests", "tools"}
"""Folders with programs that no user runs."""
TITLE = re.compile(r"\(documentation: ([^()]+)\)")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "reference/alerts.md",
        "reference/alerts.yaml",
        "reference/configuration.yaml",
        "llms.txt",
        "reference/metrics.md",
    ],
)
def test_page_is_up_to_date(generator: ModuleType, name: str) -> None:
    """A change of the catalog or of the configuration's models is followed by ``make docs``."""
    page = ROOT / "docs" / name
    assert page.read_text(encoding="utf-8") == generator.pages()[page], "run: make docs"


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as `make docs` does it."""
    arguments = ["build", "--strict", "--config-file", str(config), "--site-dir", str(site)]
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_site_is_complete(tmp_path: Path) -> None:
    """
    The site has no dead link or anchor, and each page in the navigation.

    Runbooks and commands are pages; nothing is loaded from another host.
    """
    done = build(ROOT / "mkdocs.yml", tmp_path)
    assert done.returncode == 0, done.stderr
    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")
    }
    runbooks = {f"runbooks/{path.stem}.html" for path in (ROOT / "alerts" / "runbooks").glob("*.md")}
    assert runbooks
    assert runbooks <= pages.keys()
    assert all(f'href="../{runbook}"' in pages["reference/alerts.html"] for runbook in runbooks)
    assert 'id="kafka_quota_utilization_ratio"' in pages["reference/metrics.html"]
    assert 'id="spark_kafka_throttled_seconds_total"' in pages["reference/spark-metrics.html"]
    assert 'id="quotascope-quotas-set"' in pages["reference/commands.html"]
    assert "--measure-only" in pages["reference/commands.html"]
    assert [found for text in pages.values() for found in LOADED.findall(text)] == []
    guide = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert guide.startswith("# quotascope\n\n> Quota observability for Apache Kafka: quotascope shows which users ")
    targets = LINK.findall(guide)
    assert {
        "start/start.md",
        "reference/commands.md",
        "reference/configuration.md",
        "CHANGELOG.md",
        "decisions/0001-namespace-mapping.md",
    } <= {*targets}
    assert [target for target in targets if not (tmp_path / target).read_text(encoding="utf-8").strip()] == []


def test_dead_links_and_lost_pages_fail_the_build(tmp_path: Path) -> None:
    """A dead link, a dead anchor, a link out of `docs` and a page outside the menu are named and fail the build."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[a](gone.md) [b](#no-such-part) [c](../pyproject.toml)\n")
    (docs / "lost.md").write_text("# Lost\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nhooks: []\nplugins: []\nnav: [index.md]\n")
    done = build(config, tmp_path / "site")
    assert done.returncode != 0
    for text in ("gone.md", "#no-such-part", "../pyproject.toml", "lost.md"):
        assert text in done.stderr


MOST_LINES = 120
"""Of a section of the changelog."""


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_root_lead_somewhere(name: str) -> None:
    """Links of the documents in the root, such as the README, lead to files that exist."""
    targets = LINK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_changelog_says_what_a_release_does() -> None:
    """A section of the changelog can be read in minutes."""
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections if section.count("\n") > MOST_LINES] == []


def texts_of(source: str) -> list[str]:
    """Return the texts of a program, joined from their parts, with those of f-strings between their values."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant | ast.JoinedStr)]
    texts = []
    for node in nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts))
    return texts


def titles_of(texts: list[str]) -> set[str]:
    """Return the titles of pages to which texts refer."""
    return {" ".join(title.split()) for text in texts for title in TITLE.findall(text)}


def is_title(title: str, heading: str) -> bool:
    """Return whether a title is a heading, or all of it before a subtitle or an explanation in parentheses."""
    return (
        heading == title
        or heading.startswith((f"{title}: ", f"{title} ("))
        or (title.endswith("?") and heading.startswith(f"{title} "))
    )


def test_messages_name_pages_that_exist() -> None:
    """Each `(documentation: TITLE)` in messages, helps and descriptions is the heading of one page of docs/."""
    sources = [path for path in ROOT.glob("[!.]*/**/*.py") if path.relative_to(ROOT).parts[0] not in NO_PRODUCT]
    titles = {title for path in sources for title in titles_of(texts_of(path.read_text(encoding="utf-8")))}
    pages = [path.read_text(encoding="utf-8").partition("\n")[0] for path in (ROOT / "docs").rglob("*.md")]
    headings = [page.removeprefix("# ") for page in pages if page.startswith("# ")]
    assert {"Teams", "Python Kafka clients in Spark tasks", "What if?"} <= titles
    assert {title: found for title in titles if len(found := [h for h in headings if is_title(title, h)]) != 1} == {}


@pytest.mark.parametrize(
    ("source", "titles"),
    [
        ("x = 'read (documentation: Teams).'", {"Teams"}),
        (
            "x = ('see (documentation: Python '\n 'clients) and (documentation: Security)')",
            {"Python clients", "Security"},
        ),
        ("x = f'{y}: no (documentation: The ' f'log)'", {"The log"}),
        ("x = 'the documentation: nothing'", set()),
    ],
)
def test_titles_are_collected_from_whole_texts(source: str, titles: set[str]) -> None:
    """A title is found on several lines of a program too, and beside values."""
    assert titles_of(texts_of(source)) == titles


@pytest.mark.parametrize(
    ("title", "heading", "is_one"),
    [
        ("Teams", "Teams", True),
        ("Spark", "Spark: what Kafka's quotas cost a job", True),
        ("Spark", "Spark jobs", False),
        ("What if?", "What if? Test a quota", True),
        ("Teams of clients", "Teams", False),
    ],
)
def test_a_title_is_a_whole_heading(title: str, heading: str, *, is_one: bool) -> None:
    """A subtitle may be left out of a title, and nothing else."""
    assert is_title(title, heading) == is_one
