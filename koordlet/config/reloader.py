"""Noticing that the configuration file changed, and reading it again.

Covers: when to read, keeping the old configuration when the new one is bad.
Does not cover: acting on a change (``daemon``), signals.

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

from koordlet.config import file_source, layers, loader, places, schema
from koordlet.model import errors
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class _Unread:
    """The file could not be read at all: the reason stands for its content."""

    reason: str


class Reloader:
    """Watches one file on behalf of a loop that calls ``poll``."""

    def __init__(
        self,
        path: str | None,
        env: Mapping[str, str],
        flags: Mapping[str, object],
        effective: loader.Effective,
    ) -> None:
        self._path = loader.DEFAULT_PATH if path is None else path
        self._env = env
        self._flags = flags
        #: The last good configuration.
        self.effective = effective
        # What the file was when ``effective`` was read is not known, so the first look reads it.
        self._seen: file_source.Identity | None = None
        self._pending = True
        self._content: object = None
        #: Why the file as it is now is not in force; ``None`` while it is.
        self.error: errors.ConfigError | None = None

    def poll(self) -> loader.Effective | errors.ConfigError | None:
        """The new configuration, why it is not taken, or ``None`` while nothing changed."""
        now = file_source.identity(self._path)
        if now != self._seen:
            self._seen, self._pending = now, True
            return None
        if not self._pending:
            return None
        self._pending = False
        return self._read(again=False)

    def force(self) -> loader.Effective | errors.ConfigError:
        """Read now, whatever the file looks like: for SIGHUP."""
        self._seen, self._pending = file_source.identity(self._path), False
        result = self._read(again=True)
        return self.effective if result is None else result

    def _read(self, *, again: bool) -> loader.Effective | errors.ConfigError | None:
        content: object
        try:
            content = file_source.read(self._path)
        except errors.ConfigError as error:
            content = _Unread(str(error))
            return self._once(content, error, again=again)
        if not again and content == self._content:
            return None
        try:
            effective = self._accept(content)
        except errors.ConfigError as error:
            return self._once(content, error, again=again)
        unchanged = effective == self.effective
        self._content, self.effective, self.error = content, effective, None
        return None if unchanged and not again else effective

    def _accept(self, text: str | None) -> loader.Effective:
        # A file with content has the key; without a file it is built in.
        had_content = self.effective.origins["apiVersion"] != layers.BUILT_IN
        if had_content and (text is None or loader.file_layer(text, self._path) is None):
            what = "the file vanished" if text is None else "the file became empty"
            fix = "write it again, or restart the agent to return to the defaults"
            raise errors.ConfigError(f"{what}: its last content stays", culprit=self._path, fix=fix)
        return loader.from_text(text, self._path, self._env, self._flags)

    def _once(
        self, content: object, error: errors.ConfigError, *, again: bool
    ) -> errors.ConfigError | None:
        known = content == self._content
        self._content, self.error = content, error
        return None if known and not again else error


def changes(old: schema.Config, new: schema.Config) -> tuple[str, ...]:
    """The dotted paths whose values differ."""
    before = dict(layers.leaves(schema.plain(old)))
    after = dict(layers.leaves(schema.plain(new)))
    return tuple(
        places.dotted(loc)
        for loc in {**before, **after}
        if loc not in before or loc not in after or before[loc] != after[loc]
    )
