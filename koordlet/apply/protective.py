"""Watch on protective limits, checked ten times a second.

Covers: detecting that another program rewrote one. Does not cover: writing it again, which the
triggered pass does.

Rules:
1. Where inotify reports writes (on the file itself, tried on cgroup v1), a file is read after an
   event and after a plan that changes it. Elsewhere it is read at each look.
2. Events are not complete, so a few files are read at each look in turn. The kernel reports no
   write through another mount in another cgroup namespace, no CPUs that it takes out of a set, and
   no removed cgroup.

Cost: one read(2) for the events and ``AT_ONCE`` pread(2) of kept descriptors, whatever the number
of limits.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence

from koordlet.apply import kinds
from koordlet.host.fs import root
from koordlet.model import action

if typing.TYPE_CHECKING:
    from koordlet.host.fs import inotify

#: Files that are read at each look although nothing was told of them.
AT_ONCE = 8
#: Enough for any number, and for the list of every second of 8 192 CPUs.
_SIZE = 1 << 15


class _File:
    """One watched limit."""

    __slots__ = ("handle", "right", "wanted", "watch")

    def __init__(self, handle: int, wanted: kinds.FileAction) -> None:
        #: Below zero once it is not watched any more.
        self.handle = handle
        self.wanted = wanted
        #: The number of its watch; ``None`` while nothing is told of it.
        self.watch: int | None = None
        #: The text that was found to be what is wanted: the same bytes are compared once.
        self.right: bytes | None = None


class Watch:
    """The protective files of the last plan."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._files: dict[str, _File] = {}
        self._events: inotify.Inotify | None = None
        self._watched: dict[int, str] = {}
        #: Read at each look: nothing is told of these.
        self._silent: set[str] = set()
        #: Read at the next look: written by somebody, not right at the last one, wanted otherwise.
        self._doubted: set[str] = set()
        #: Whose turn it is, the next ones last.
        self._turns: list[Sequence[_File]] = []
        #: The wishes that are watched; ``None`` where they have to be followed again.
        self.followed: Iterable[action.Action] | None = None

    def listen(self) -> None:
        """Start inotify; without it every file is read at each look."""
        try:
            self._events = self._host.events()
        except OSError:
            return
        for target, file in self._files.items():
            self._attach(target, file)

    def follow(self, wanted: Iterable[action.Action], *, again: bool = False) -> None:
        """Watch exactly the protective files among these; new ones are read at the next look.

        They have to be followed ``again`` where one of them could not be opened, too.
        """
        keep = {
            write.target: write
            for write in wanted
            if isinstance(write, kinds.FILES) and write.protective
        }
        for target in [target for target in self._files if target not in keep]:
            self._drop(target)
        for target, write in keep.items():
            file = self._files.get(target)
            if file is None:
                if self._open(target, write):
                    self._doubted.add(target)
            elif file.wanted is not write and file.wanted != write:
                file.wanted, file.right = write, None
                self._doubted.add(target)
        self.followed = None if again or keep.keys() != self._files.keys() else wanted

    def broken(self) -> list[str]:
        """Targets that do not hold koordlet's value now; a vanished file does not count."""
        if self._events is not None:
            self._hear(self._events)
            self._doubted.update(self._next())
        self._doubted |= self._silent
        if not self._doubted:
            return []
        doubted = [file for target in self._doubted if (file := self._files.get(target))]
        suspicious, self._doubted = self._differing(doubted), set()
        broken = [target for target in suspicious if not self._holds(target)]
        # What is not right, or gives no answer, is read until it is right.
        self._doubted.update(broken)
        return broken

    def text(self, target: str) -> bytes | None:
        """What a watched file says; ``None`` for others, and where there is no answer."""
        file = self._files.get(target)
        if file is None:
            return None
        try:
            return self._host.pread(file.handle, _SIZE)
        except OSError:
            return None  # of a group that is gone, too: there may be another under its path

    def close(self) -> None:
        """Close all descriptors and watches."""
        self.follow(())
        if self._events is not None:
            self._events.close()
            self._events = None

    def _hear(self, events: inotify.Inotify) -> None:
        for event in events.drain():
            if event.watch < 0:
                self._doubted.update(self._files)
            elif event.watch in self._watched:
                self._doubted.add(self._watched[event.watch])

    def _next(self) -> Iterable[str]:
        """Of the files in turn, those whose bytes differ from the last correct ones."""
        if not self._turns:
            every = list(self._files.values())
            self._turns = [every[at : at + AT_ONCE] for at in range(0, len(every), AT_ONCE)]
        now = [file for file in self._turns.pop() if file.handle >= 0] if self._turns else []
        return self._differing(now)

    def _differing(self, files: Sequence[_File]) -> list[str]:
        """Of these files, those whose bytes differ from the last correct ones."""
        texts = self._host.preads([file.handle for file in files], _SIZE)
        if texts == [file.right for file in files]:
            # Nearly always.
            return [file.wanted.target for file in files if file.right is None]
        pairs = zip(files, texts, strict=True)
        return [file.wanted.target for file, text in pairs if text is None or text != file.right]

    def _holds(self, target: str) -> bool:
        file = self._files.get(target)
        if file is None:
            return True
        try:
            data = self._host.pread(file.handle, _SIZE)
        except OSError as error:
            if self._host.silence.met(error, gap=True):
                self._doubted.add(target)
                return True  # nobody knows
            # Its group is gone. One made anew under the same path has other files.
            wanted = file.wanted
            self._drop(target)
            return not self._open(target, wanted) or self._holds(target)
        if data != file.right:
            write = file.wanted
            if not kinds.same(write, write.value, data.decode("utf-8", "replace")):
                return False
            file.right = data
        return True

    def _open(self, target: str, wanted: kinds.FileAction) -> bool:
        try:
            handle = self._host.open(self._host.at(target))
        except OSError:
            return False  # gone meanwhile: the next plan will not name it
        file = self._files[target] = _File(handle, wanted)
        self._attach(target, file)
        return True

    def _attach(self, target: str, file: _File) -> None:
        self._silent.add(target)
        if self._events is None:
            return
        try:
            file.watch = self._events.add_file(self._host.at(target))
        except OSError:
            return  # gone, or no watches left: it is read each time
        self._watched[file.watch] = target
        self._silent.discard(target)

    def _drop(self, target: str) -> None:
        file = self._files.pop(target)
        self._silent.discard(target)
        self._doubted.discard(target)
        self._host.close(file.handle)
        file.handle = -1
        if file.watch is not None and self._events is not None:
            self._watched.pop(file.watch, None)
            self._events.remove(file.watch)
