"""Limits that protect others, looked at ten times a second.

Covers: noticing that somebody rewrote one. Does not cover: writing it again: the line does, as
always, in the pass that this triggers.

Cost: one pread(2) of a cached descriptor per limit, about a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.apply import kinds
from koordlet.host import root
from koordlet.model import action

#: Enough for any cpuset list or number.
_SIZE = 4096


class Watch:
    """The protective files of the last plan."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._files: dict[str, tuple[int, kinds.FileAction]] = {}

    def follow(self, wanted: Iterable[action.Action]) -> None:
        """Watch exactly the protective writes among these."""
        keep = {
            one.target: one for one in wanted if isinstance(one, kinds.FILES) and one.protective
        }
        for target in [target for target in self._files if target not in keep]:
            self._host.close(self._files.pop(target)[0])
        for target, one in keep.items():
            if target in self._files:
                self._files[target] = (self._files[target][0], one)
                continue
            try:
                self._files[target] = (self._host.open(self._host.at(target)), one)
            except OSError:
                continue  # gone meanwhile: the next plan will not name it

    def broken(self) -> list[str]:
        """The targets that do not hold our value now. One that vanished is not broken."""
        found = []
        for target, (handle, one) in list(self._files.items()):
            try:
                text = self._host.pread(handle, _SIZE).decode("utf-8", "replace")
            except OSError:
                # Its group is gone. One made anew under the same path has other files.
                self._host.close(self._files.pop(target)[0])
                continue
            if not kinds.same(one, one.value, text):
                found.append(target)
        return found

    def close(self) -> None:
        """Give all descriptors back."""
        self.follow(())
