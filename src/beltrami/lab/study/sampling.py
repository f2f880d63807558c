"""Draw: which splits a study trains on, and from which seeds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

FIXED = ("planetoid", "ogb", "published")  # protocols of one split, whatever the seed


@dataclass(frozen=True)
class Sampling:
    """``splits`` splits of a protocol, and on each of them ``inits`` runs.

    Split s is trained from the seeds s, s + 1, ...; so more splits or more seeds add runs and change none.

    Args:
        protocol: the name of the rule that draws splits.
        splits: how many; one where the protocol has only one.
        inits: runs a split.
    """

    protocol: str
    splits: int
    inits: int

    def __post_init__(self) -> None:
        if self.splits < 1 or self.inits < 1:
            raise ValueError(f"a study needs `splits` and `inits` of at least 1; got {self.splits}, {self.inits}.")
        if self.fixed and self.splits != 1:
            raise ValueError(
                f"the protocol {self.protocol!r} has one split; got `splits` {self.splits}: ask for more `inits`."
            )

    @property
    def fixed(self) -> bool:
        return self.protocol in FIXED

    def resized(self, *, splits: int | None, inits: int | None) -> "Sampling":
        """The same protocol drawn more or less often; None for as it is."""
        return replace(
            self,
            splits=self.splits if splits is None else splits,
            inits=self.inits if inits is None else inits,
        )

    def seeds(self) -> Iterator[tuple[int, int]]:
        """Every split's seed with each seed of a run on it."""
        return ((s, s + i) for s in range(self.splits) for i in range(self.inits))
