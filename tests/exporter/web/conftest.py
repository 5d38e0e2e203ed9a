"""Certificates for all tests of the front."""

import pytest
from tests.cluster.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, a server and a client."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))
