from __future__ import annotations

from pathlib import Path
from typing import Any

from quotascope.exporter.config import Config
from quotascope.exporter.config.load import files_in, loaded


def config(password: Path, **server: Any) -> Config:
    """One source with a password in a file, one without."""
    auth = {"username": "me", "password_file": password}
    header = {"Authorization": password}
    sources: list[dict[str, Any]] = [
        {"url": "http://a:1/jolokia", "basic_auth": auth, "header_files": header},
        {"url": "http://b:1/jolokia"},
    ]
    return Config.model_validate({"sources": sources, "server": server})


def test_every_file_is_found(tmp_path: Path) -> None:
    """In sections, lists and mappings alike."""
    file = tmp_path / "password"
    file.write_text("secret")
    assert list(files_in(config(file))) == [file, file]


def test_what_a_file_holds_counts(tmp_path: Path) -> None:
    """A new password behind an old name is another setting, of those alone who use it."""
    file = tmp_path / "password"
    file.write_text("old")
    before = loaded(config(file))
    file.write_text("new")
    after = loaded(config(file))
    pairs = zip(after.config.sources, before.config.sources, strict=True)
    assert [after.same(before, *pair) for pair in pairs] == [False, True]
    assert "new" not in repr(after)


def test_file_that_went_away_is_another(tmp_path: Path) -> None:
    """It cannot be read, which its user will tell; here it only differs."""
    file = tmp_path / "password"
    file.write_text("old")
    before = loaded(config(file))
    file.unlink()
    after = loaded(before.config)
    assert not after.same(before, after.config.sources, before.config.sources)


def test_other_values_are_other_settings(tmp_path: Path) -> None:
    """Whatever their files hold."""
    file = tmp_path / "password"
    file.write_text("same")
    before, after = loaded(config(file, port=1)), loaded(config(file, port=2))
    assert after.same(before, after.config.sources, before.config.sources)
    assert not after.same(before, after.config.server, before.config.server)
