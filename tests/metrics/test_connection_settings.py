from quotascope.cli.settings import _CONNECTION, _PLACES, KafkaOptions
from quotascope.exporter.config import KafkaConfig
from quotascope.exporter.config.load import section_at, value_places
from quotascope.metrics.connection_settings import SETTINGS


def test_each_setting_is_a_key_of_the_configuration_with_a_variable_and_maybe_a_flag() -> None:
    """Configuration, environment and command line have the declared settings, in the same words."""
    places = set(value_places())
    assert {setting.place for setting in SETTINGS} <= places
    for setting in SETTINGS:
        section = section_at(setting.place[:-1])
        assert section is not None
        assert section.model_fields[setting.key].description == setting.description
        assert setting.variable == "QUOTASCOPE_" + "__".join(setting.place).upper()
    flags = {setting.flag: setting.place for setting in SETTINGS if setting.flag}
    assert len(flags) == 14
    assert flags.items() <= _PLACES.items()
    assert [*KafkaOptions.__dataclass_fields__] == [*_CONNECTION]


def test_all_keys_of_a_login_are_declared() -> None:
    """A key of SASL that is declared elsewhere would have no flag, and effect with any mechanism."""
    declared = {setting.place for setting in SETTINGS}
    sasl = {place for place in value_places() if place[:2] == ("kafka", "sasl")}
    assert sasl <= declared
    assert all(setting.mechanisms for setting in SETTINGS if setting.place in sasl and setting.key != "mechanism")
    assert KafkaConfig.model_fields["bootstrap_servers"].is_required()
