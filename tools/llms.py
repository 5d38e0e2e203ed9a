"""
The site's ``llms.txt``: its pages with their own titles and first sentences, for assistants (llmstxt.org).

The navigation in ``mkdocs.yml`` gives the order; ``docs_site.py`` puts each page's Markdown beside its HTML.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tools.docs_site import MOVED, REFERENCES, commands_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
_LAST = "Engineering"
"""Section that an assistant may leave out, under the title that the format has for it."""
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r".+?[.?!](?= |$)")
_LENGTHS = range(20, 240)
"""Least and greatest number of characters of a page's first sentence; any other sentence is left out."""
_IS_PROSE = re.compile(r"[A-Za-z*_`[]")


def llms_txt() -> str:
    """Return the text."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    sections: dict[str, list[str]] = {}
    for section, page in _pages(settings["nav"], "Pages"):
        sections.setdefault("Optional" if section == _LAST else section, []).append(page)
    sections["Optional"] = sections.pop("Optional")  # the optional section comes last
    parts = [f"# {settings['site_name']}", "", f"> {settings['site_description']}: {sentence_of('index.md')}", ""]
    parts.append("Each page is Markdown at this address, and HTML with the ending `.html`.")
    for section, pages in sections.items():
        parts += ["", f"## {section}", "", *map(_line, pages)]
    return "\n".join(parts) + "\n"


def _pages(nav: list[Any], section: str) -> Iterator[tuple[str, str]]:
    """Yield the pages of a part of the navigation, each with the title of the outermost section that it is in."""
    for entry in nav:
        for title, target in entry.items() if isinstance(entry, dict) else (("", entry),):
            if isinstance(target, str):
                yield section, target
            else:
                yield from _pages(target, title if section == "Pages" else section)


def _line(page: str) -> str:
    if page == "reference/commands.md":
        return f"- [Commands]({page}): {commands_summary()}"
    for path, title, command in REFERENCES.values():
        if page == path:
            return f"- [{title}]({page}): `{command}` prints this file."
    sentence = sentence_of(page)
    return f"- [{_title(_text(page))}]({page}){f': {sentence}' if sentence else ''}"


def sentence_of(page: str) -> str:
    """Return the first sentence of a page without its links; empty where it begins with something else than prose."""
    paragraphs = _text(page).split("\n\n")
    prose = next((text for text in paragraphs if _IS_PROSE.match(text) and not text.startswith("- ")), "")
    plain = _LINK.sub(r"\1", " ".join(prose.split())).replace("**", "")
    match = _SENTENCE.match(plain)
    sentence = match[0] if match else ""
    return sentence if len(sentence) in _LENGTHS else ""


def _title(text: str) -> str:
    match = _TITLE.search(text)
    return match[1].replace("`", "") if match else ""


def _text(page: str) -> str:
    moved = {new: old for old, new in MOVED.items()}
    return (ROOT / moved.get(page, f"docs/{page}")).read_text(encoding="utf-8")
