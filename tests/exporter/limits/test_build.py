from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quotascope.clients.security import SaslMechanism, SecurityProtocol
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits.admin import connection_of


def kafka(**keys: Any) -> KafkaConfig:
    """The section ``kafka`` with these keys."""
    given = {"bootstrap_servers": "a:9092,b:9092", **keys}
    config = Config.model_validate({"kafka": given}).kafka
    assert config is not None
    return config


def test_settings_are_passed_on(tmp_path: Path) -> None:
    """A mounted secret without the line end that editors add, and shown nowhere."""
    plain = connection_of(kafka(timeout_seconds=3))
    assert plain.bootstrap_servers == ("a:9092", "b:9092")
    assert plain.protocol is SecurityProtocol.PLAINTEXT
    assert (plain.sasl, plain.timeout_seconds) == (None, 3)
    file = tmp_path / "pw"
    file.write_text("s3cret \n")
    sasl = {"mechanism": "SCRAM-SHA-256", "username": "me", "password_file": file}
    login = connection_of(kafka(security_protocol="SASL_PLAINTEXT", sasl=sasl))
    assert login.sasl is not None
    assert login.sasl.mechanism is SaslMechanism.SCRAM_SHA_256
    assert login.sasl.password.reveal() == "s3cret "
    assert "s3cret" not in repr(login)
    tls = connection_of(kafka(security_protocol="SSL", tls={"verify": False}))
    assert not tls.tls.verify


def test_files_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    """A wrong CA file, a key password without need of it, an unreadable secret: each is a message."""
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"kafka: .*ca\.pem"):
        connection_of(kafka(security_protocol="SSL", tls={"ca_file": broken}))
    binary = tmp_path / "binary"
    binary.write_bytes(b"hunter2\xff")
    sasl = {"username": "me", "password_file": binary}
    with pytest.raises(ConfigError, match=r"kafka: .*binary is not UTF-8 text"):
        connection_of(kafka(security_protocol="SASL_PLAINTEXT", sasl=sasl))
    gone = tmp_path / "pw"
    gone.touch()
    sasl = {"username": "me", "password_file": gone}
    config = kafka(security_protocol="SASL_PLAINTEXT", sasl=sasl)
    gone.unlink()
    with pytest.raises(ConfigError, match=r"kafka: .*pw: No such file"):
        connection_of(config)


def test_password_of_a_key_is_passed_on(tmp_path: Path) -> None:
    """An encrypted key is opened with it; here there is no certificate at all, which is told."""
    cert = tmp_path / "cert.pem"
    cert.touch()
    tls = {"cert_file": cert, "key_password": "pw"}
    with pytest.raises(ConfigError, match=r"client certificate .*cert\.pem"):
        connection_of(kafka(security_protocol="SSL", tls=tls))
