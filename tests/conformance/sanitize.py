"""Vectors about names."""

from tests.conformance import expectations
from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields, as_text
from tests.conformance.runner import Runner

from quotascope.metrics import desanitize, mbean_name, sanitize


class SanitizeRunner(Runner):
    """Sanitizes users and names MBeans."""

    def op_sanitize(self, step: Fields) -> None:
        """Percent-encode."""
        expectations.text(step, sanitize(step.text("value")))

    def op_round_trip(self, step: Fields) -> None:
        """Percent-encode and decode again."""
        value = step.text("value")
        expectations.same(desanitize(sanitize(value)), value, "round trip of")

    def op_mbean(self, step: Fields) -> None:
        """Name an MBean."""
        tags = step.several("tags", _pair)
        name = mbean_name(step.text("prefix"), step.text("group"), tags)
        expectations.text(step, name)


def _pair(value: object) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise Malformed(f"a key and a value were expected, not {value!r:.60}")
    return as_text(value[0]), as_text(value[1])
