"""Vectors about what a KRaft controller stores."""

from tests.conformance import expectations
from tests.conformance.fields import Fields, as_text
from tests.conformance.runner import Runner

from quotascope.metrics import validate_alteration
from quotascope.metrics.protocol import ErrorCode


class QuotaValidationRunner(Runner):
    """Validates alterations of one key."""

    def op_validate(self, step: Fields) -> None:
        """Compare the error, `NONE` for an alteration that is stored."""
        raw = step.raw("entity")
        entity = step.fields("entity")
        kinds = list(raw) if isinstance(raw, dict) else []
        names = {as_text(kind): entity.optional_text(kind) for kind in kinds}
        changes = [(step.text("key"), float(step.number("value")))]
        found = validate_alteration(names, changes, release=self._release)
        codes = {each.error_code for each in found}
        expectations.text(
            step, "+".join(ErrorCode(code).name for code in codes) or "NONE"
        )
