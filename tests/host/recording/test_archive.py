"""Archives answer as directories do, and those that are out to harm are refused with the reason."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordlet.host.fs import live_host, root
from koordlet.host.recording import roots, tarindex
from koordlet.model import errors
from tests.kit import machines

Member = tuple[str, bytes | str]


def packed(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    """A plain tar of the members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                made.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            made.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def special(name: str, kind: bytes, linkname: str = "") -> tarfile.TarInfo:
    """A member that is no regular file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, linkname
    return info


def saved(tmp_path: Path, content: bytes, name: str = "m.tar") -> str:
    """The content as a file."""
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


def loaded(tmp_path: Path, *members: tarfile.TarInfo | tuple[str, bytes]) -> root.HostRoot:
    """An archive of the members, opened."""
    return roots.open_root(saved(tmp_path, packed(*members)))


def errno_of(call: Callable[[], object]) -> int | None:
    """The errno that a call fails with."""
    try:
        call()
    except OSError as error:
        return error.errno
    return None


ONLINE = ("sys/devices/system/cpu/online", b"0-3\n")

# Answers ----------------------------------------------------------------------------------------


def test_answers(tmp_path: Path) -> None:
    """Files, listings, kinds and handles are those of the archive."""
    host = loaded(tmp_path, ONLINE, special("sys/link", tarfile.SYMTYPE, "devices"))
    path = host.sys("devices/system/cpu/online")
    handle = host.open(path)

    assert host.read(path) == b"0-3\n"
    assert [host.pread(handle, 2), host.pread(handle, 10)] == [b"0-", b"0-3\n"]
    assert host.list(host.sys()) == ["devices", "link"]
    assert (host.stat(host.sys()).kind, host.stat(host.sys()).links) == (root.FileKind.DIRECTORY, 3)
    assert (host.stat(path).kind, host.stat(path).size) == (root.FileKind.FILE, 4)
    assert host.readlink(host.sys("link")) == "devices"
    assert host.list(host.sys("link")) == ["system"]


def test_closed_handle_is_gone(tmp_path: Path) -> None:
    """A handle that was given back answers nothing."""
    host = loaded(tmp_path, ONLINE)
    handle = host.open(host.sys("devices/system/cpu/online"))
    host.close(handle)

    assert errno_of(lambda: host.pread(handle, 1)) == errno.EBADF
    assert errno_of(lambda: host.close(handle)) == errno.EBADF


def test_errors_are_those_of_a_file_system(tmp_path: Path) -> None:
    """What is missing, or of another kind, has the errno that a disk would give."""
    host = loaded(tmp_path, ONLINE)
    file = host.sys("devices/system/cpu/online")
    calls: dict[int, Callable[[], object]] = {
        errno.ENOENT: lambda: host.read(host.sys("nothing")),
        errno.EISDIR: lambda: host.read(host.sys("devices")),
        errno.ENOTDIR: lambda: host.read(host.below(file, "deeper")),
        errno.EINVAL: lambda: host.readlink(file),
        errno.ENOSYS: lambda: host.statvfs(file),
    }

    assert list(calls) == [errno_of(call) for call in calls.values()]
    assert errno_of(lambda: host.list(file)) == errno.ENOTDIR


def test_archive_is_read_only(tmp_path: Path) -> None:
    """Nothing that changes anything works on an archive."""
    host = loaded(tmp_path, ONLINE)
    calls: list[Callable[[], object]] = [
        lambda: host.write(host.sys("x"), b""),
        lambda: host.mkdir(host.sys("x")),
        lambda: host.rmdir(host.sys("devices")),
        lambda: host.mount("none", host.sys("x"), "tmpfs", ""),
        lambda: host.unmount(host.sys("x")),
    ]

    assert [errno_of(call) for call in calls] == [errno.EROFS] * 5
    assert (host.access(host.sys(), os.R_OK), host.access(host.sys(), os.W_OK)) == (True, False)


def test_absolute_link_starts_at_the_top(tmp_path: Path) -> None:
    """An absolute link means the recorded tree; where it holds nothing, nothing is found."""
    host = loaded(
        tmp_path,
        ONLINE,
        special("sys/good", tarfile.SYMTYPE, "/sys/devices/system/cpu/online"),
        special("sys/out", tarfile.SYMTYPE, "/etc/hostname"),
    )

    assert host.read(host.sys("good")) == b"0-3\n"
    assert errno_of(lambda: host.read(host.sys("out"))) == errno.ENOENT


def test_link_circle_ends(tmp_path: Path) -> None:
    """Links in a circle are ELOOP."""
    host = loaded(
        tmp_path,
        ONLINE,
        special("sys/x", tarfile.SYMTYPE, "y"),
        special("sys/y", tarfile.SYMTYPE, "x"),
    )

    assert errno_of(lambda: host.read(host.sys("x"))) == errno.ELOOP


def test_hard_link_is_the_file(tmp_path: Path) -> None:
    """A hard link to a member before it has its content."""
    host = loaded(tmp_path, ONLINE, special("sys/same", tarfile.LNKTYPE, ONLINE[0]))

    assert host.read(host.sys("same")) == b"0-3\n"


# Where the root is ------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "./", "node7/", "root/", "node7/root/", "a/b/"])
def test_root_is_found(tmp_path: Path, before: str) -> None:
    """The top, a single top folder, or ``root/`` in either may hold ``sys``."""
    host = loaded(tmp_path, (before + ONLINE[0], ONLINE[1]))

    assert host.read(host.sys("devices/system/cpu/online")) == b"0-3\n"


def test_our_own_recording_is_found(tmp_path: Path) -> None:
    """Beside ``root/`` there are frames and a manifest."""
    host = loaded(
        tmp_path, ("root/" + ONLINE[0], b"0-3"), ("frames/0.jsonl", b""), ("manifest.json", b"")
    )

    assert host.list(root.HostPath("/")) == ["sys"]


@pytest.mark.parametrize("compress", [gzip.compress, bytes])
def test_compression_is_told_by_content(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    """The name of the file does not matter."""
    host = roots.open_root(saved(tmp_path, compress(packed(ONLINE)), "whatever.bin"))

    assert host.list(root.HostPath("/")) == ["sys"]


@pytest.mark.parametrize("before", ["", "node7", "root", "node7/root"])
def test_root_is_found_in_directories(tmp_path: Path, before: str) -> None:
    """A directory is looked at as an archive is."""
    machines.to_directory({ONLINE[0]: "0-3\n"}, tmp_path / before)

    host = roots.open_root(str(tmp_path))

    assert host.read(host.sys("devices/system/cpu/online")) == b"0-3\n"


def test_no_root_is_this_machine() -> None:
    """Without ``--root`` it is the live host."""
    assert isinstance(roots.open_root(None), live_host.LiveHost)
    assert isinstance(roots.open_root(""), live_host.LiveHost)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "archive"),
        (b"hello, world", "archive"),
        (b"\x1f\x8b\x08broken", "archive"),
        (b"\xfd7zXZ\0", "xz"),
        (b"PK\x03\x04", "zip"),
        (packed(("home/x", b"")), "neither sys/ nor proc/"),
        (packed(("a/x", b""), ("b/x", b"")), "neither sys/ nor proc/"),
    ],
)
def test_no_machine_in_it(tmp_path: Path, content: bytes, why: str) -> None:
    """A file that holds no machine is refused by name, with what to give instead."""
    name = saved(tmp_path, content)

    with pytest.raises(errors.ConfigError) as caught:
        roots.open_root(name)

    assert name == caught.value.culprit
    assert why in caught.value.message + caught.value.fix
    assert "sys/" in caught.value.fix


def test_no_such_root(tmp_path: Path) -> None:
    """A missing path, a device and an empty directory are refused."""
    (tmp_path / "empty").mkdir()
    for spec in (str(tmp_path / "nothing"), "/dev/null", str(tmp_path / "empty")):
        with pytest.raises(errors.ConfigError):
            roots.open_root(spec)


# Hostile archives -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (("/sys/x", b""), "has an absolute name"),
        (("sys/../../x", b""), "has an absolute name"),
        (("..", b""), "has an absolute name"),
        (("sys/" + "d/" * 100 + "x", b""), "has an absolute name"),
        (special("sys/x", tarfile.SYMTYPE, "../../etc/passwd"), "links out of the tree"),
        (special("sys/x", tarfile.SYMTYPE, "/../etc/passwd"), "links out of the tree"),
        (special("sys/x", tarfile.LNKTYPE, "/etc/passwd"), "hard link out of the tree"),
        (special("sys/x", tarfile.LNKTYPE, "../x"), "hard link out of the tree"),
        (special("sys/x", tarfile.LNKTYPE, "sys/none"), "hard link to a missing file"),
        (special("sys/x", tarfile.LNKTYPE, "sys/devices"), "other than a file"),
        (special("sys/x", tarfile.CHRTYPE), "not a regular file"),
        (special("sys/x", tarfile.BLKTYPE), "not a regular file"),
        (special("sys/x", tarfile.FIFOTYPE), "not a regular file"),
        ((ONLINE[0] + "/below", b""), "which is not a directory"),
        ((f"{ONLINE[0]}/", b""), "occurs twice"),
    ],
)
def test_hostile_member(
    tmp_path: Path, member: tarfile.TarInfo | tuple[str, bytes], why: str
) -> None:
    """The archive is refused with the reason and the member."""
    if not isinstance(member, tarfile.TarInfo) and member[0].endswith("/"):
        member = special(member[0], tarfile.DIRTYPE)

    with pytest.raises(errors.ConfigError, match="refused: member") as caught:
        loaded(tmp_path, ONLINE, member)

    assert why in caught.value.message


def test_member_below_a_link(tmp_path: Path) -> None:
    """A member cannot be placed through a link."""
    with pytest.raises(errors.ConfigError, match="not a directory"):
        loaded(tmp_path, ONLINE, special("sys/l", tarfile.SYMTYPE, "devices"), ("sys/l/x", b""))


def test_too_many_entries(tmp_path: Path) -> None:
    """A million entries are refused at the limit, not after the last."""
    limits = tarindex.ArchiveLimits(entries=50)
    name = saved(tmp_path, packed(*((f"sys/{number}", b"") for number in range(100))))

    with pytest.raises(errors.ConfigError, match="one too many"):
        tarindex.load(name, limits)


def test_directories_count_as_entries(tmp_path: Path) -> None:
    """Directories that only a deep name implies count, too."""
    limits = tarindex.ArchiveLimits(entries=100)
    name = saved(tmp_path, packed(*((f"sys/{n}/a/b/c/d/e/f", b"") for n in range(40))))

    with pytest.raises(errors.ConfigError, match="one too many"):
        tarindex.load(name, limits)


def test_too_many_bytes(tmp_path: Path) -> None:
    """One giant file and many large ones are refused before they are read."""
    name = saved(tmp_path, packed(("sys/a", b"x" * 600), ("sys/b", b"x" * 600)))

    with pytest.raises(errors.ConfigError, match="claims 600 bytes"):
        tarindex.load(name, tarindex.ArchiveLimits(file_bytes=500))
    with pytest.raises(errors.ConfigError, match="in total"):
        tarindex.load(name, tarindex.ArchiveLimits(total_bytes=1000))


def test_bomb(tmp_path: Path) -> None:
    """A gigabyte of zeros in a small file is refused by its size."""
    info = tarfile.TarInfo("sys/bomb")
    info.size = 1 << 30
    name = saved(tmp_path, gzip.compress(info.tobuf() + bytes(1 << 20)))

    with pytest.raises(errors.ConfigError, match="claims 1073741824 bytes"):
        roots.open_root(name)


def test_bomb_in_a_header(tmp_path: Path) -> None:
    """A header that claims to be giant is counted below the tar reader."""
    info = special("sys/x", tarfile.XHDTYPE)
    info.size = 1 << 40
    name = saved(tmp_path, gzip.compress(info.tobuf() + bytes(1 << 22)))

    with pytest.raises(errors.ConfigError, match="archive"):
        tarindex.load(name, tarindex.ArchiveLimits(stream_bytes=1 << 20))


def test_lying_size(tmp_path: Path) -> None:
    """A member that claims more than the archive holds is refused."""
    whole = packed(("sys/a", b"x" * 5000))
    name = saved(tmp_path, whole[:2048])

    with pytest.raises(errors.ConfigError):
        roots.open_root(name)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=20))
def test_random_damage(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    """An archive with random bytes changed is opened or refused; nothing else comes out of it."""
    raw = bytearray(packed(ONLINE, special("sys/l", tarfile.SYMTYPE, "devices"), ("proc/x", b"y")))
    for place, value in changes:
        raw[place % len(raw)] = value
    name = saved(tmp_path, bytes(raw))

    culprit, kind = name, root.FileKind.OTHER
    try:
        kind = roots.open_root(name).stat(root.HostPath("/")).kind
    except errors.ConfigError as error:
        culprit = error.culprit

    assert name == culprit
    assert kind in (root.FileKind.OTHER, root.FileKind.DIRECTORY)
