"""The machine that we run on: its kernel's files as they are, and the calls that no file has.

Covers: writing, mounting, events. Does not cover: reading, as of every root on a disk
(``host.fs.root``).
"""

from __future__ import annotations

import errno
import os
import typing
from collections.abc import Sequence

from koordlet.host.fs import root

if typing.TYPE_CHECKING:
    from koordlet.host.fs import inotify
    from koordlet.host.process import perf_events, scheduler_calls


class LiveHost(root.DiskRoot):
    """The machine that we run on."""

    live = True

    def _where(self, path: root.HostPath, *, follow: bool = True) -> str:
        del follow  # the kernel follows links itself
        return path

    def write(self, path: root.HostPath, data: bytes) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if os.write(handle, data) != len(data):
                raise root.fail(errno.EIO, path)
        except OSError as error:
            # write(2) knows no name; the explanation needs one.
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            os.close(handle)

    def write_each(self, path: root.HostPath, lines: Sequence[bytes]) -> list[int]:
        # One descriptor for all: a third of the system calls where thousands of threads move.
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        answers: list[int] = []
        try:
            for line in lines:
                try:
                    os.write(handle, line)
                    answers.append(0)
                except OSError as error:
                    answers.append(error.errno or errno.EIO)
        finally:
            os.close(handle)
        return answers

    def exchange(self, path: root.HostPath, data: bytes) -> bytes | OSError:
        # One descriptor for both; what is only written (memory.reclaim) refuses to be opened so.
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except PermissionError:
            return super().exchange(path, data)
        try:
            if os.write(handle, data) != len(data):
                raise root.fail(errno.EIO, path)
            try:
                original = os.pread(handle, root.PAGE, 0)
                # A buffer of a page costs nothing, a larger one page faults: only for the few.
                return original if len(original) < root.PAGE else os.pread(handle, root.CHUNK, 0)
            except OSError as error:
                return error
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            os.close(handle)

    def mkdir(self, path: root.HostPath) -> None:
        os.mkdir(path, 0o755)

    def rmdir(self, path: root.HostPath) -> None:
        os.rmdir(path)

    def access(self, path: root.HostPath, mode: int) -> bool:
        return os.access(path, mode)

    def events(self) -> inotify.Inotify:
        from koordlet.host.fs import inotify  # noqa: PLC0415 -- 2 ms of ctypes that the first pass does without

        return inotify.Inotify()

    def performance(self) -> perf_events.PerfEvents:
        from koordlet.host.process import perf_events  # noqa: PLC0415 -- 2 ms of ctypes, off by default

        return perf_events.PerfEvents()

    def scheduler(self) -> scheduler_calls.SchedulerCalls:
        from koordlet.host.process import scheduler_calls  # noqa: PLC0415 -- 2 ms of ctypes, off by default

        return scheduler_calls.SchedulerCalls()

    def mount(self, source: str, target: root.HostPath, fstype: str, options: str) -> None:
        from koordlet.host.process import libc  # noqa: PLC0415 -- 2 ms of ctypes: mounting is rare

        libc.call("mount", source, target, fstype, 0, options, path=target)

    def unmount(self, target: root.HostPath) -> None:
        from koordlet.host.process import libc  # noqa: PLC0415 -- 2 ms of ctypes: mounting is rare

        libc.call("umount2", target, 0, path=target)
