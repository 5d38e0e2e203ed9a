"""Kafka's releases, as far as they differ in quotas."""

import re
from dataclasses import dataclass
from typing import Final

from .errors import MalformedName
from .numbers import INT_MAX, LONG_MAX

_VERSION: Final = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\d{1,4})*(?:-[A-Za-z0-9.-]{1,40})?")
METADATA_LEVELS: Final = (
    (33, 4, 4),
    (30, 4, 3),
    (29, 4, 2),
    (27, 4, 1),
    (25, 4, 0),
    (21, 3, 9),
    (20, 3, 8),
    (19, 3, 7),
    (14, 3, 6),
    (11, 3, 5),
    (8, 3, 4),
    (7, 3, 3),
)
"""Newest level of the feature `metadata.version` that a release offers, with the release; the newest first (Kafka: `MetadataVersion`)."""


@dataclass(frozen=True, slots=True, order=True)
class KafkaRelease:
    """
    A release of Kafka that an engine, a replay or a client follows.

    A throttle time is computed in 64 bits and sent in 32. Up to 4.3 the high bits are cut off: above 24.8 days the time turns
    negative, which counts as not throttled, or into any other number. Since 4.4 the throttle times of byte rates and of the request
    quota stop at 2^31-1 ms (Kafka: `ClientQuotaManager.recordAndGetThrottleTimeMs`). Those of controller mutations are cut in
    either (`ControllerMutationQuotaManager`, `AbstractControllerMutationQuota`). At 1 B/s one request of 3 MB is enough.
    """

    major: int
    minor: int

    @staticmethod
    def parse(text: str) -> "KafkaRelease":
        """
        Return the release that a version such as `4.4`, `4.3.1` or `4.4.0-SNAPSHOT` belongs to.

        Raises:
            MalformedName: it is no version.

        """
        match = _VERSION.fullmatch(text)
        if match is None or not text.isascii():
            raise MalformedName(text, "is not a version of Kafka such as 4.4 or 4.3.1")
        return KafkaRelease(int(match[1]), int(match[2]))

    @staticmethod
    def of_metadata_version(level: int) -> "KafkaRelease | None":
        """
        Return the release of a broker by the newest level of `metadata.version` that it supports; None for one before KRaft.

        Brokers say so in their answers to ApiVersions (KIP-584). A level between two releases is a preview that the older one offers;
        one above all is of a release that was not known here, and counts as the newest.
        """
        for newest, major, minor in METADATA_LEVELS:
            if level >= newest:
                return KafkaRelease(major, minor)
        return None

    @property
    def saturates(self) -> bool:
        """Whether the throttle times of rates stop at 2^31-1 ms rather than wrap around."""
        return self >= KAFKA_4_4

    @property
    def longest_rate_ms(self) -> int:
        """The ms at which the throttle time of a rate stops before it is cut to 32 bits."""
        return INT_MAX if self.saturates else LONG_MAX

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


KAFKA_4_4: Final = KafkaRelease(4, 4)
"""Changed throttle times, which responses make a client wait, and what a controller stores as a quota."""
NEWEST_RELEASE: Final = KAFKA_4_4
"""What is followed where no other release is known."""
