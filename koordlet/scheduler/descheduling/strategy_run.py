"""How one strategy of a profile went through a round.

Covers: counting what it wanted and what came of it. Does not cover: the round (``round``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.limits import EvictionAnswer


@dataclass(slots=True)
class StrategyRun:
    """How one strategy of a profile went through a round."""

    profile: str
    strategy: str
    #: By the clock of whoever plays the round; its waiting for answers included.
    seconds: float = 0.0
    #: Nodes that it wants relieved, where it is one that looks at nodes.
    sources: int = 0
    #: Pods that it wanted gone, or ranked; of these, those that fit on no other node, and those of
    #: which it came so, or would have.
    intents: int = 0
    unfit: int = 0
    moved: int = 0

    def answered(self, answer: EvictionAnswer) -> None:
        """Count an intent by what came of it."""
        self.intents += 1
        self.unfit += answer is EvictionAnswer.UNFIT
        self.moved += answer.evicted

    def end(self, seconds: float, sources: int) -> None:
        """The strategy is through."""
        self.seconds, self.sources = seconds, sources

    @property
    def stuck(self) -> bool:
        """Whether there was something to do, and nothing came of it."""
        return bool(self.sources or self.intents) and not self.moved
