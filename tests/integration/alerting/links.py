"""Where the links of an alert lead."""

import json
import urllib.parse
from pathlib import Path
from typing import Any, Final

from tests.integration import web

GENERATED: Final = Path(__file__).parents[3] / "dashboards" / "generated"


def runbook(url: str) -> str:
    """The runbook that a link gives: a page of the exporter about that alert."""
    answer = web.ask(url)
    assert answer.status == 200
    assert f"<h1>{url.rpartition('/')[2]}</h1>" in answer.text
    return answer.text


def dashboard(url: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The committed dashboard that a link opens, and the variables that it sets; all of them are the dashboard's."""
    parts = urllib.parse.urlsplit(url)
    uid = parts.path.rpartition("/d/")[2]
    model: dict[str, Any] = json.loads((GENERATED / f"{uid}.json").read_text())
    assert model["uid"] == uid
    pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
    variables = {name.removeprefix("var-"): value for name, value in pairs}
    assert all(name.startswith("var-") for name, _ in pairs)
    assert variables.keys() <= {variable["name"] for variable in model["templating"]["list"]}
    return model, variables
