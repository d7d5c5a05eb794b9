"""Noticing that the configuration file changed, and reading it again.

Covers: when to read, keeping the old configuration when the new one is bad.
Does not cover: acting on a change (``agent.loop``), signals.

Rules:
1. ``poll`` costs one ``stat`` while nothing changes.
2. A change is read by the poll after the one that noticed it, when it has held still in between:
   an editor that writes a file in pieces is never caught halfway.
3. A bad file is reported once for each content, and the last good configuration stays.
4. A file that vanished or became empty keeps the old configuration too: both happen to a full disk
   and a careless redirection, and neither is a request for the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from koordlet.config import examiner, file_source, parcel, places, sourced
from koordlet.model import errors
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class _Unread:
    """The file could not be read at all: the reason stands for its content."""

    reason: str


class _Asked(NamedTuple):
    """A validation in progress and its input."""

    examination: examiner.Examination
    content: str | None
    again: bool


class Reloader:
    """Watches one file on behalf of a loop that calls ``poll``."""

    def __init__(
        self,
        path: str | None,
        env: Mapping[str, str],
        flags: Mapping[str, object],
        effective: sourced.Effective,
        ask: examiner.Ask = examiner.here,
        *,
        error: errors.ConfigError | None = None,
    ) -> None:
        self._named = path
        self._path = places.DEFAULT_PATH if path is None else path
        self._env = env
        self._flags = flags
        self._ask = ask
        #: What is being validated.
        self._asked: _Asked | None = None
        #: The last good configuration.
        self.effective = effective
        # What the file was when ``effective`` was read is not known, so the first look reads it;
        # most often it says the same.
        self._seen: file_source.Identity | None = None
        self._pending = True
        self._content: object = effective.text if error is None else _Unread(str(error))
        #: Why the file as it is now is not in force; ``None`` while it is. ``error``: at the start.
        self.error = error

    def poll(self) -> parcel.Answer | None:
        """The new configuration, why it is not taken, or ``None`` while nothing changed."""
        if self._asked is not None:
            return self._heard(self._asked)
        now = file_source.identity(self._path)
        if now != self._seen:
            self._seen, self._pending = now, True
            return None
        if not self._pending:
            return None
        self._pending = False
        return self._read(again=False)

    def force(self) -> parcel.Answer | None:
        """Read now, whatever the file looks like: for SIGHUP. ``None``: a later poll will tell."""
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.examination.cancel()
        self._seen, self._pending = file_source.identity(self._path), False
        return self._read(again=True)

    def _read(self, *, again: bool) -> parcel.Answer | None:
        content: object
        # A file with content has the key; without a file it is built in.
        kept = self.effective.origin("apiVersion") != sourced.BUILT_IN
        try:
            # Where a start was refused for want of the file that was named, it is still wanted.
            named = self._named if self.error is not None and not kept else None
            content = (
                file_source.read(self._path) if named is None else file_source.configured(named)[0]
            )
        except errors.ConfigError as error:
            content = _Unread(str(error))
            return self._once(content, error, again=again)
        if not again and content == self._content:
            return None
        question = parcel.Question(
            text=content,
            path=self._path,
            env=self._env,
            flags=self._flags,
            kept=kept,
        )
        self._asked = _Asked(self._ask(question), content, again)
        return self._heard(self._asked)

    def _heard(self, asked: _Asked) -> parcel.Answer | None:
        # A question whose answer raises is over as well: the next look is at the next change.
        self._asked = None
        answered = asked.examination.answer()
        if answered is None:
            self._asked = asked
            return None
        if isinstance(answered, errors.ConfigError):
            return self._once(asked.content, answered, again=asked.again)
        unchanged = answered == self.effective
        self._content, self.effective, self.error = asked.content, answered, None
        return None if unchanged and not asked.again else answered

    def _once(
        self, content: object, error: errors.ConfigError, *, again: bool
    ) -> errors.ConfigError | None:
        known = content == self._content
        self._content, self.error = content, error
        return None if known and not again else error
