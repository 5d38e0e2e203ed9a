"""Where the token comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotascope.dashboards.errors import GrafanaError
from quotascope.dashboards.token import token


def test_a_file_comes_before_the_environment(tmp_path: Path) -> None:
    """Blanks and the newline at its end are not part of it."""
    file = tmp_path / "token"
    file.write_text(" glsa_1\n")
    assert token(file, {"GRAFANA_TOKEN": "glsa_2"}) == "glsa_1"
    assert token(None, {"GRAFANA_TOKEN": "glsa_2\n"}) == "glsa_2"


@pytest.mark.parametrize("content", ["", "\n"])
def test_no_token_says_where_none_was(tmp_path: Path, content: str) -> None:
    """The file, or the name of the variable."""
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(GrafanaError, match=r"no token in .*token; Grafana gives one"):
        token(file, {})
    with pytest.raises(GrafanaError, match="GRAFANA_TOKEN"):
        token(None, {"GRAFANA_TOKEN": content})


@pytest.mark.parametrize("content", ["a\nX-Header: b", "a b", "\x00", "tökén"])
def test_a_token_that_would_break_the_header_is_refused(
    tmp_path: Path, content: str
) -> None:
    """And not shown."""
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(GrafanaError, match="characters that no token has") as failure:
        token(file, {})
    assert content not in str(failure.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Missing, or not text."""
    with pytest.raises(GrafanaError, match=r"cannot read .*: No such file"):
        token(tmp_path / "missing", {})
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GrafanaError, match="it is not text"):
        token(binary, {})
