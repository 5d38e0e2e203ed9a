import pytest

from quotascope.spark_listener.errors import InvalidProperty
from quotascope.spark_listener.exposition.settings import page_settings, push_settings

DRIVER = {"spark.driver.host": "driver-1", "spark.driver.bindAddress": "10.0.0.7"}


def test_the_page_is_where_the_driver_is() -> None:
    """It listens where the driver's own ports do, and is called what the driver is called."""
    settings = page_settings(DRIVER)
    assert settings is not None
    assert (settings.bind_address, settings.host, settings.port) == (
        "10.0.0.7",
        "driver-1",
        0,
    )
    assert settings.file_sd_path is None
    unbound = page_settings({"spark.driver.host": "driver-1"})
    assert unbound is not None
    assert unbound.bind_address == "driver-1"
    nowhere = page_settings({})
    assert nowhere is not None
    assert (nowhere.bind_address, nowhere.host) == ("localhost", "localhost")


def test_the_page_can_be_elsewhere_or_nowhere() -> None:
    """Properties go before the driver's own addresses, and can switch it off."""
    settings = page_settings(
        {
            **DRIVER,
            "spark.quotascope.http.bindAddress": "127.0.0.1",
            "spark.quotascope.http.host": "proxy",
            "spark.quotascope.http.port": "9400",
            "spark.quotascope.fileSd.path": "/sd/{app_id}.json",
        }
    )
    assert settings is not None
    assert (settings.bind_address, settings.host, settings.port) == (
        "127.0.0.1",
        "proxy",
        9400,
    )
    assert settings.file_sd_path == "/sd/{app_id}.json"
    assert page_settings({"spark.quotascope.http.enabled": "false"}) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("http.port", "-1"),
        ("http.port", "65536"),
        ("http.port", "x"),
        ("http.enabled", "maybe"),
        ("fileSd.path", "/sd/drivers.txt"),
    ],
)
def test_what_cannot_be_meant_of_the_page(name: str, text: str) -> None:
    """Is refused with the property's name."""
    with pytest.raises(InvalidProperty, match=name):
        page_settings({f"spark.quotascope.{name}": text})


def push(
    environ: dict[str, str] | None = None, /, **properties: str
) -> dict[str, object] | None:
    """What is understood of `spark.quotascope.otlp.*`."""
    named = {f"spark.quotascope.otlp.{name}": text for name, text in properties.items()}
    settings = push_settings(named, environ or {})
    if settings is None:
        return None
    return {
        "protocol": settings.protocol,
        "endpoint": settings.endpoint,
        "headers": settings.headers,
        "interval": settings.interval_seconds,
    }


def test_nothing_is_pushed_unless_it_is_asked_for() -> None:
    """OpenTelemetry's variables are in every container; they alone switch nothing on."""
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert push(environ) is None
    assert push(environ, enabled="false", endpoint="http://collector:4318") is None
    told = push(environ, enabled="true")
    assert told is not None
    assert told["endpoint"] is None


def test_an_endpoint_switches_it_on() -> None:
    """A URL without a path is completed as the specification says; gRPC has none."""
    told = push(endpoint="http://collector:4318")
    assert told == {
        "protocol": "http/protobuf",
        "endpoint": "http://collector:4318/v1/metrics",
        "headers": None,
        "interval": 60.0,
    }
    grpc = push(endpoint="https://collector:4317/", protocol="grpc")
    assert grpc is not None
    assert grpc["endpoint"] == "https://collector:4317"


def test_what_the_environment_says() -> None:
    """Protocol and interval, below the properties."""
    environ = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_METRIC_EXPORT_INTERVAL": "1500",
    }
    told = push(environ, enabled="true")
    assert told is not None
    assert (told["protocol"], told["interval"]) == ("grpc", 1.5)
    ours = push(
        environ, enabled="true", protocol="http/protobuf", intervalSeconds="0.5"
    )
    assert ours is not None
    assert (ours["protocol"], ours["interval"]) == ("http/protobuf", 0.5)


def test_headers() -> None:
    """Names in small letters, values as in URLs."""
    told = push(enabled="true", secretHeaders="Authorization=Bearer%20x%3D, X-Key = 1")
    assert told is not None
    assert told["headers"] == {"authorization": "Bearer x=", "x-key": "1"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("endpoint", "collector:4318"),
        ("endpoint", "ftp://geheim"),
        ("endpoint", "http://user:geheim@collector:4318"),
        ("endpoint", "http://collector:geheim"),
        ("secretHeaders", "geheim"),
        ("secretHeaders", "a=geheim%0A"),
        ("secretHeaders", "=geheim"),
        ("protocol", "http/json"),
        ("intervalSeconds", "0"),
        ("intervalSeconds", "nan"),
        ("intervalSeconds", "x"),
        ("enabled", "perhaps"),
    ],
)
def test_what_cannot_be_meant_of_a_push(name: str, text: str) -> None:
    """Is refused with the property's name and without its secret."""
    with pytest.raises(InvalidProperty, match=name) as refused:
        push(**{"enabled": "true", name: text})
    assert "geheim" not in str(refused.value)


def test_a_secret_is_in_no_representation() -> None:
    """Neither headers nor a key in the URL."""
    settings = push_settings(
        {
            "spark.quotascope.otlp.endpoint": "http://collector:4318/x?key=geheim",
            "spark.quotascope.otlp.secretHeaders": "key=geheim",
        },
        {},
    )
    assert settings is not None
    assert "geheim" not in repr(settings) + settings.place
    assert settings.place == "http://collector:4318/x"
