"""
Adds to the site of ``docs/`` what is not in that folder.

Runbooks, files of the root, the configuration, the help of each command.

mkdocs calls its ``on_`` functions (``hooks`` in mkdocs.yml). A link that leaves ``docs/`` becomes a link within the
site, or plain text where the site has no such page. mkdocs reports a link to a file that does not exist.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from mkdocs.structure.files import File
from typer.testing import CliRunner

from quotascope.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
RUNBOOKS = "alerts/runbooks"
MOVED = {
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
    **{f"{RUNBOOKS}/{path.name}": f"runbooks/{path.name}" for path in sorted((ROOT / RUNBOOKS).glob("*.md"))},
}  # fmt: skip
"""Files outside of ``docs/`` by their path, with their path in the site."""
REFERENCES = {
    "reference/configuration.yaml": ("reference/configuration.md", "Configuration", "quotascope config example"),
    "reference/alerts.yaml": ("reference/alerts-configuration.md", "Configuration of alerts", "quotascope alerts config"),
}  # fmt: skip
"""Files of ``docs/`` that a page shows: its path, its title, and the command that prints the file."""
ALERTS = "reference/alerts.md"
SOURCES: dict[str, str] = {}
"""Markdown of the pages of this build, by the path in the site."""
METRICS = ("reference/metrics.md", "reference/spark-metrics.md")
"""Pages with a list item for each metric."""
METRIC = re.compile(r"<li>(\s*(?:<p>)?<code>(\w+)</code>)")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the runbooks into the menu, after the page of the alerts."""
    sections: dict[str, list[dict[str, Any]]] = {
        name: entries for part in config.nav or () for name, entries in part.items()
    }
    reference = sections["Reference"]
    place = next(index for index, entry in enumerate(reference) if ALERTS in entry.values())
    runbooks = [page for page in MOVED.values() if page.startswith("runbooks/")]
    reference.insert(place + 1, {"Runbooks": [{Path(page).stem: page} for page in runbooks]})
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not in ``docs/``."""
    for path, page in MOVED.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    for name, (page, title, command) in REFERENCES.items():
        reference = (Path(config.docs_dir) / name).read_text("utf-8")
        text = f"# {title}\n\n`{command}` prints this file.\n\n```yaml\n{reference}```\n"
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    return files


def commands_summary() -> str:
    """Return a sentence about the page of commands."""
    return "The help of each command, as the terminal shows it."


def commands_page() -> str:
    """Return the help of each command, as the terminal shows it."""
    parts = ["# Commands", ""]
    variables = {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}
    for words in _commands(typer.main.get_command(app), ()):
        output = CliRunner().invoke(app, [*words, "--help"], env=variables).output
        lines = (line.rstrip() for line in output.strip("\n").splitlines())
        parts += [f"## quotascope {' '.join(words)}", "", "```text", *lines, "```", ""]
    return "\n".join(parts)


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 typer's commands are groups or not
    children = getattr(command, "commands", {})
    if not children:
        yield words
    for name, child in sorted(children.items()):
        yield from _commands(child, (*words, name))


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """
    Turn links to files of the repository, relative to the page's own file, into links between pages of the site.

    Of a link to a file that is no page of the site, the text stays.
    """
    places = {new: old for old, new in MOVED.items()}
    source = places.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def replaced(link: re.Match[str]) -> str:
        """Return the link to the page that its target has become."""
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if not (ROOT / path).exists():
            return link[0]  # mkdocs reports it
        if path in MOVED:
            destination = MOVED[path]
        elif path.startswith("docs/") and (ROOT / path).is_file():
            destination = path.removeprefix("docs/")
            destination = REFERENCES[destination][0] if destination in REFERENCES else destination
        else:
            return text
        start = posixpath.dirname(page.file.src_uri) or "."
        return f"[{text}]({posixpath.relpath(destination, start)}{anchor})"

    text = LINK.sub(replaced, markdown)
    SOURCES[page.file.src_uri] = text
    return text


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Give each metric that a page of the reference lists an anchor of its name."""
    return METRIC.sub(r'<li id="\2">\1', html) if page.file.src_uri in METRICS else html


def on_post_build(config: MkDocsConfig) -> None:
    """Put the Markdown of each page, to which llms.txt leads, beside its HTML."""
    for name, text in SOURCES.items():
        path = Path(config.site_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
