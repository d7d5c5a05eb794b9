"""Channels: the newest state to everybody who listens."""

from __future__ import annotations

from koordlet.http import message


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[bytes] = []

    def event(self, data: bytes) -> None:
        """One event."""
        self.events.append(data)


def test_nobody_listens() -> None:
    """Nothing is made."""
    made: list[bytes] = []

    def newest() -> bytes:
        made.append(b"x")
        return made[-1]

    message.Channel(newest).publish()

    assert not made


def test_everybody_hears_the_same_bytes() -> None:
    """A state is made once for all; a newcomer gets one at once, who left gets none."""
    states = iter([b"a", b"b", b"c", b"d"])
    channel = message.Channel(lambda: next(states))
    first, second = Heard(), Heard()
    channel.listen(first)
    channel.listen(second)
    channel.publish()
    channel.leave(first)
    channel.publish()

    assert first.events == [b"a", b"c"]
    assert second.events == [b"b", b"c", b"d"]
    assert channel.listeners == 1


def test_who_leaves_while_it_is_told() -> None:
    """The others are told all the same."""
    channel = message.Channel(lambda: b"x")
    last = Heard()

    class Leaving(Heard):
        def event(self, data: bytes) -> None:
            super().event(data)
            channel.leave(self)

    channel.listen(Leaving())
    channel.listen(last)
    channel.publish()

    assert last.events == [b"x", b"x"]
    assert channel.listeners == 1
