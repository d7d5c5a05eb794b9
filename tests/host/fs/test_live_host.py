"""This machine's own files: what was refused has a name, what was taken in part is no success."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.fs import inotify, live_host, root
from koordlet.host.process import perf_events, scheduler_calls

HOST = live_host.LiveHost()
#: Its name, which the kernel keeps, cuts to 15 bytes, and ends with a newline.
COMM = root.HostRoot.at("/proc/self/comm")
#: Is written, and never read.
CLEAR_REFS = root.HostRoot.at("/proc/self/clear_refs")
FULL = root.HostRoot.at("/dev/full")


@pytest.fixture
def path(tmp_path: Path) -> root.HostPath:
    """An ordinary file of eight bytes."""
    (tmp_path / "file").write_bytes(b"original")
    return root.HostRoot.at(str(tmp_path / "file"))


@contextlib.contextmanager
def at_most(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes: the kernel takes a part, and then nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_leaves_what_is_beyond_it_as_a_kernel_file_does(path: root.HostPath) -> None:
    """Neither truncated nor created: a group that is gone does not come back as a file."""
    HOST.write(path, b"new")
    assert HOST.read(path) == b"newginal"
    with pytest.raises(FileNotFoundError) as refused:
        HOST.write(root.HostRoot.at(f"{path}-gone"), b"new")
    assert refused.value.filename == f"{path}-gone"


def test_a_refused_write_names_the_file(path: root.HostPath) -> None:
    """write(2) knows no name; one that takes a part only is an error as well."""
    for refused_by, act in (("write", HOST.write), ("exchange", HOST.exchange)):
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as refused:
            act(FULL, b"new")
        assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, FULL), refused_by
        with at_most(4), pytest.raises(OSError, match="Input/output") as refused:
            act(path, b"too much")
        assert (refused.value.errno, refused.value.filename) == (errno.EIO, path), refused_by


def test_lines_are_written_one_by_one_each_with_its_answer(path: root.HostPath) -> None:
    """A thread that ended does not keep the others from moving."""
    assert HOST.write_each(path, [b"1234", b"5678", b"9"]) == [0, 0, 0]
    assert HOST.read(path) == b"123456789"
    with at_most(4):
        assert HOST.write_each(path, [b"abcd", b"efgh"]) == [0, errno.EFBIG]
    assert HOST.write_each(FULL, [b"1", b"2"]) == [errno.ENOSPC, errno.ENOSPC]
    with pytest.raises(FileNotFoundError):
        HOST.write_each(root.HostRoot.at(f"{path}-gone"), [b"1"])


def test_an_exchange_returns_what_the_kernel_made_of_it() -> None:
    """Not what was written: a set of CPUs comes back in another form."""
    name = HOST.read(COMM)
    try:
        assert HOST.exchange(COMM, b"a-name-that-is-too-long") == b"a-name-that-is-\n"
    finally:
        HOST.write(COMM, name.rstrip())


def test_an_exchange_reads_all_of_a_long_file(tmp_path: Path) -> None:
    """More than a page is rare, and no reason to cut it."""
    (tmp_path / "long").write_bytes(b"-" * 3 * root.PAGE)
    where = root.HostRoot.at(str(tmp_path / "long"))
    assert HOST.exchange(where, b"new") == b"new" + b"-" * (3 * root.PAGE - 3)


def test_a_file_that_is_only_written_is_written(path: root.HostPath) -> None:
    """That it cannot be read is an answer, and no failure: root may open it, others may not."""
    answer = HOST.exchange(CLEAR_REFS, b"1")
    assert isinstance(answer, OSError)
    assert answer.errno in {errno.EINVAL, errno.EACCES}
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        HOST.exchange(CLEAR_REFS, b"nonsense")
    assert HOST.read(path) == b"original"


def test_directories_are_for_all_to_read(tmp_path: Path) -> None:
    """As the kernel makes groups; one with something in it stays."""
    group = root.HostRoot.at(str(tmp_path / "group"))
    before = os.umask(0)
    try:
        HOST.mkdir(group)
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(group).stat().st_mode) == 0o755
    assert HOST.access(group, os.R_OK | os.X_OK)
    (tmp_path / "group/file").touch()
    with pytest.raises(OSError, match=os.strerror(errno.ENOTEMPTY)):
        HOST.rmdir(group)
    (tmp_path / "group/file").unlink()
    HOST.rmdir(group)
    assert not HOST.access(group, os.F_OK)


def test_links_lead_where_the_kernel_says(path: root.HostPath) -> None:
    """A recorded machine's stay inside of it; these are followed anywhere."""
    link = Path(f"{path}-link")
    link.symlink_to(path)
    assert HOST.live
    assert HOST.read(root.HostRoot.at(str(link))) == b"original"


def test_a_refused_mount_names_its_target(tmp_path: Path) -> None:
    """Whether it is refused because nothing is there, or because of who asks."""
    target = root.HostRoot.at(str(tmp_path / "nothing"))
    with pytest.raises(OSError, match=r"No such file|not permitted") as refused:
        HOST.mount("none", target, "tmpfs", "")
    assert refused.value.filename == target
    with pytest.raises(OSError, match=r"No such file|not permitted") as refused:
        HOST.unmount(target)
    assert refused.value.filename == target


def test_the_calls_of_a_running_kernel_are_there() -> None:
    """Events of files are heard; counters and scheduling classes are asked for elsewhere."""
    events = HOST.events()
    with contextlib.closing(events):
        assert isinstance(events, inotify.Inotify)
    assert isinstance(HOST.performance(), perf_events.PerfEvents)
    assert isinstance(HOST.scheduler(), scheduler_calls.SchedulerCalls)
