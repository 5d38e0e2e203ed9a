"""Entities that make the requests: many, of which few make most, and perhaps one giant."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

CLIENTS_OF_A_USER: Final = 4
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """
    Entities by rank, the busiest first.

    Args:
        entities: How many pairs of user and client id.
        exponent: Of Zipf's law; the busiest of 2,000 makes an eighth of the requests with 1.
        giant: Share of all requests that the first one makes; with 0 it follows the law like the others.

    """

    entities: int
    exponent: float = 1.0
    giant: float = 0.0

    def user(self, rank: int) -> str:
        """Return the user of an entity; a few client ids share one."""
        return f"user-{rank // CLIENTS_OF_A_USER:06d}"

    def client_id(self, rank: int) -> str:
        """Return the client id of an entity."""
        return f"app-{rank:06d}"

    def weights(self) -> Floats:
        """Return the share of the requests that each entity makes; together 1."""
        shares = np.arange(1, self.entities + 1, dtype=np.float64) ** -self.exponent
        shares /= shares.sum()
        if not self.giant:
            return shares
        shares *= (1 - self.giant) / (1 - shares[0])
        shares[0] = self.giant
        return shares

    def counts(self, requests: int) -> Integers:
        """Return the number of requests of each entity, rounded so that they add up."""
        ends = np.rint(np.cumsum(self.weights()) * requests).astype(np.int64)
        return np.diff(ends, prepend=0)

    def draw(self, requests: int, random: np.random.Generator) -> Integers:
        """Return the ranks of the clients that make the requests, one after the other."""
        bounds = np.cumsum(self.weights())
        ranks = np.searchsorted(bounds, random.random(requests))
        return np.minimum(ranks, self.entities - 1).astype(np.int64)
