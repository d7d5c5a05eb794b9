"""Which gangs name each other: lists of gangs, and the gangs that carry them.

Covers: who is connected with whom, in either direction. Does not cover: the gangs themselves
(``book``).

Equal lists are one mention, however many gangs carry them: a group costs the sum of its different
lists, not the square of its gangs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from koordlet.model.record import dataclass


@dataclass(slots=True, eq=False)
class Mention:
    """A list of gangs, and the gangs that carry it."""

    names: frozenset[str]
    owners: set[str] = field(default_factory=set)


class Mentions:
    """All lists of gangs."""

    def __init__(self) -> None:
        self._by_names: dict[tuple[str, ...], Mention] = {}
        #: The mentions that name a gang.
        self._naming: dict[str, dict[tuple[str, ...], Mention]] = {}

    def __contains__(self, key: str) -> bool:
        """Whether anybody names a gang."""
        return key in self._naming

    def connected(self, key: str, carried: Callable[[str], Mention | None]) -> set[str]:
        """A gang and all that are connected with it; ``carried``: the mention of a gang."""
        reached, ahead, seen = {key}, [key], set()
        while ahead:
            current = ahead.pop()
            several = list(self._naming.get(current, {}).values())
            own = carried(current)
            if own is not None:
                several.append(own)
            for mention in several:
                if id(mention) not in seen:
                    seen.add(id(mention))
                    fresh = (mention.names | mention.owners) - reached
                    reached |= fresh
                    ahead += fresh
        return reached

    def add(self, names: tuple[str, ...], owner: str) -> tuple[Mention, bool]:
        """Let a gang carry a list; the mention, and whether that connects others anew."""
        mention = self._by_names.get(names)
        connects = mention is None or owner not in mention.names
        if mention is None:
            mention = self._by_names[names] = Mention(frozenset(names))
            for name in mention.names:
                self._naming.setdefault(name, {})[names] = mention
        mention.owners.add(owner)
        return mention, connects

    def remove(self, mention: Mention, owner: str) -> Iterable[str]:
        """Let a gang carry a list no more; the gangs that nobody names any more."""
        mention.owners.discard(owner)
        if mention.owners:
            return ()
        names = next(names for names, each in self._by_names.items() if each is mention)
        del self._by_names[names]
        unnamed = []
        for name in mention.names:
            several = self._naming[name]
            del several[names]
            if not several:
                del self._naming[name]
                unnamed.append(name)
        return unnamed
