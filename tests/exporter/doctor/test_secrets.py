from __future__ import annotations

from pathlib import Path

from tests.cluster.certificates import make_certificates
from tests.exporter.web.serving import tls_section, web_file

from quotascope.exporter.config import Config
from quotascope.exporter.doctor.secrets import secrets


def test_secrets_that_everybody_can_read(tmp_path: Path) -> None:
    """Passwords, tokens and keys, each once; certificates are for everybody."""
    files = {name: tmp_path / name for name in ("password", "token", "key", "cert")}
    for file in files.values():
        file.touch(0o644)
    files["token"].chmod(0o640)
    config = Config.model_validate(
        {
            "sources": [
                {
                    "url": "https://a",
                    "header_files": {"Authorization": files["token"]},
                    "tls": {"cert_file": files["cert"], "key_file": files["key"]},
                },
                {
                    "url": "https://b",
                    "basic_auth": {
                        "username": "me",
                        "password_file": files["password"],
                    },
                },
            ]
        }
    )
    found = list(secrets(config))
    assert [each.subject for each in found] == [
        str(files["key"]),
        str(files["password"]),
    ]
    assert found[0].advice == f"chmod o-rwx {files['key']}"
    files["key"].unlink()
    assert len(list(secrets(config))) == 1


def test_what_the_exporter_itself_is_protected_with(tmp_path: Path) -> None:
    """The file with the hashes of passwords, and the key that it names; one that is broken is looked at itself."""
    made = make_certificates(tmp_path)
    made.server_key.chmod(0o604)
    file = web_file(tmp_path, **tls_section(made))
    file.chmod(0o644)
    config = Config.model_validate({"server": {"web_config_file": file}})
    found = [str(file), str(made.server_key)]
    assert [each.subject for each in secrets(config)] == found
    file.write_text("nothing: known")
    assert [each.subject for each in secrets(config)] == found[:1]
