"""Small files that are read at every tick, through descriptors that are kept.

Covers: reading one as it is now. Does not cover: counters of groups (``host.counters.groups``),
which are read by the thousand.

Opening and closing a file costs two to six times what reading it does. Only for files that say
everything in one read, as ``/proc/meminfo`` does; one that says more than a page is opened anew
each time, and so is everything in a recording, where there may be another file the next moment.
"""

from __future__ import annotations

from koordlet.host.fs import root

_PAGE = 4096


class KeptFiles:
    """The descriptors of one reader."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._handles: dict[root.HostPath, int] = {}

    def read(self, path: root.HostPath) -> bytes:
        """The whole file."""
        if not self._host.live:
            return self._host.read(path)
        try:
            handle = self._handles.get(path)
            if handle is None:
                handle = self._handles[path] = self._host.open(path)
            text = self._host.pread(handle, _PAGE)
        except OSError:
            # Its group is gone, or was made anew; what is wrong with the path, ``read`` says.
            self._drop(path)
            return self._host.read(path)
        return text if len(text) < _PAGE else self._host.read(path)

    def close(self) -> None:
        """Give all descriptors back."""
        for path in list(self._handles):
            self._drop(path)

    def _drop(self, path: root.HostPath) -> None:
        handle = self._handles.pop(path, None)
        if handle is not None:
            self._host.close(handle)
