"""Channels: publish a state to all listeners, who each receive the newest one.

Covers: listeners of a channel, their number, a slow one. Does not cover: sockets (``connection``).

Rules:
1. An event is a whole state: a listener that is slow misses some of them and gets the newest.
2. The number of listeners is bounded; nothing is rendered while there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ChannelListener(Protocol):
    """One that wants every event, or the newest."""

    def event(self, data: bytes) -> None:
        """There is a newer one."""


class Channel:
    """One stream of states."""

    def __init__(self, newest: Callable[[], bytes], most: int = 16) -> None:
        self._newest = newest
        self._most = most
        self._listeners: set[ChannelListener] = set()

    @property
    def full(self) -> bool:
        """True if the limit of listeners is reached."""
        return len(self._listeners) >= self._most

    @property
    def listeners(self) -> int:
        """Number of listeners."""
        return len(self._listeners)

    def listen(self, channel_listener: ChannelListener) -> None:
        """Add a listener, which receives the newest state at once."""
        self._listeners.add(channel_listener)
        channel_listener.event(self._newest())

    def leave(self, channel_listener: ChannelListener) -> None:
        """No more."""
        self._listeners.discard(channel_listener)

    def publish(self) -> None:
        """There is a new state: made once, handed to all."""
        if not self._listeners:
            return
        data = self._newest()
        for listener in tuple(self._listeners):
            listener.event(data)
