from __future__ import annotations

from quotascope.pages.frame import framed
from quotascope.pages.markup import element


def test_page_needs_nothing_else() -> None:
    """Its style is in it, nothing may be fetched or run, and its title is one line of text."""
    page = framed("a<b\n", "p { margin: 0; }", [element("p", "x & y")])
    assert page == (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>a&lt;b\\n</title><style>p { margin: 0; }</style></head>"
        "<body><main><p>x &amp; y</p></main></body></html>\n"
    )


def test_title_is_never_long() -> None:
    """Two hundred characters, whatever a cluster is called."""
    page = framed("x" * 500, "", [])
    assert f"<title>{'x' * 199}…</title>" in page
