"""A recorded directory answers as the machine would, is read-only, and is never left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from koordlet.host.fs import live_host, root
from koordlet.host.recording import directory


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A recorded root with a secret beside it."""
    (tmp_path / "secret").write_text("outside", encoding="utf-8")
    top = tmp_path / "top"
    (top / "sys" / "a").mkdir(parents=True)
    (top / "sys" / "a" / "file").write_text("inside", encoding="utf-8")
    return top


def host(tree: Path) -> directory.DirHost:
    """The recorded machine."""
    return directory.DirHost(str(tree))


def refused(call: Callable[[], object]) -> int | None:
    """The errno that a call fails with, ``None`` if it does not."""
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_paths_are_those_of_the_machine() -> None:
    """Paths are born absolute, as on the machine, whatever the root."""
    live = live_host.LiveHost()

    assert (
        live.sys("a", "b"),
        live.proc("stat"),
        live.etc("x"),
    ) == ("/sys/a/b", "/proc/stat", "/etc/x")
    assert live.below(live.sys("a/"), "", "/b/", "c") == "/sys/a/b/c"


def test_at_takes_absolute_paths_only() -> None:
    """A path that the machine told us is normalised; a relative one is refused."""
    assert root.HostRoot.at("//a/b/../c") == "/a/c"
    with pytest.raises(ValueError, match="absolute"):
        root.HostRoot.at("a")


def test_reads(tree: Path) -> None:
    """Files, listings and kinds are those of the tree."""
    recorded = host(tree)

    assert recorded.read(recorded.sys("a", "file")) == b"inside"
    assert recorded.list(recorded.sys("a")) == ["file"]
    assert root.FileKind.DIRECTORY is recorded.stat(recorded.sys("a")).kind
    assert (recorded.exists(recorded.sys("a")), recorded.exists(recorded.sys("b"))) == (True, False)
    assert recorded.live is False


def test_pread_starts_at_the_beginning_each_time(tree: Path) -> None:
    """A handle can be read again and again."""
    recorded = host(tree)
    handle = recorded.open(recorded.sys("a", "file"))

    assert [recorded.pread(handle, 3), recorded.pread(handle, 100)] == [b"ins", b"inside"]
    recorded.close(handle)


@pytest.mark.parametrize(
    "target",
    ["/secret", "../../secret", "../../../../../../secret", "/../secret", "a/../../../secret"],
)
def test_link_never_leaves(tree: Path, target: str) -> None:
    """A link that would lead out ends at the recorded root, where nothing is."""
    (tree / "sys" / "link").symlink_to(target)
    recorded = host(tree)

    assert refused(lambda: recorded.read(recorded.sys("link"))) == errno.ENOENT


def test_directory_link_never_leaves(tree: Path) -> None:
    """A linked directory on the way is re-rooted, too."""
    (tree / "sys" / "up").symlink_to("../..")
    recorded = host(tree)

    assert refused(lambda: recorded.read(recorded.sys("up", "secret"))) == errno.ENOENT
    assert recorded.list(recorded.sys("up")) == ["sys"]


def test_absolute_link_starts_at_the_recorded_root(tree: Path) -> None:
    """``/sys/a`` in a recording means the recorded one."""
    (tree / "sys" / "link").symlink_to("/sys/a")
    recorded = host(tree)

    assert recorded.read(recorded.sys("link", "file")) == b"inside"
    assert (
        recorded.readlink(recorded.sys("link")),
        recorded.stat(recorded.sys("link"), follow=False).kind,
    ) == ("/sys/a", root.FileKind.LINK)


def test_link_circle_ends(tree: Path) -> None:
    """Links in a circle are ELOOP."""
    (tree / "sys" / "x").symlink_to("y")
    (tree / "sys" / "y").symlink_to("x")
    recorded = host(tree)

    assert refused(lambda: recorded.read(recorded.sys("x"))) == errno.ELOOP


def test_recording_is_read_only(tree: Path) -> None:
    """Nothing that changes anything works on a recording."""
    recorded = host(tree)
    calls: list[Callable[[], object]] = [
        lambda: recorded.write(recorded.sys("a", "file"), b"x"),
        lambda: recorded.mkdir(recorded.sys("new")),
        lambda: recorded.rmdir(recorded.sys("a")),
        lambda: recorded.mount("none", recorded.sys("a"), "tmpfs", ""),
        lambda: recorded.unmount(recorded.sys("a")),
    ]

    assert [refused(call) for call in calls] == [errno.EROFS] * 5
    assert recorded.read(recorded.sys("a", "file")) == b"inside"
    assert (
        recorded.access(recorded.sys("a"), os.R_OK),
        recorded.access(recorded.sys("a"), os.W_OK),
    ) == (True, False)


def test_giant_file_is_refused(tree: Path) -> None:
    """A file beyond the limit is EFBIG, not memory."""
    with (tree / "sys" / "giant").open("wb") as file:
        file.truncate(root.MAX_READ + (1 << 20))
    recorded = host(tree)

    assert refused(lambda: recorded.read(recorded.sys("giant"))) == errno.EFBIG


# Small files that may be anything ---------------------------------------------------------------


def test_content_is_the_file(tree: Path) -> None:
    """A file within the limit, directly and through a link inside of the tree."""
    (tree / "sys" / "link").symlink_to("/sys/a/file")
    (tree / "sys" / "empty").write_bytes(b"")
    recorded = host(tree)

    for _ in range(2):
        assert recorded.content(recorded.sys("a", "file"), 6) == b"inside"
        assert recorded.content(recorded.sys("link"), 6) == b"inside"
        assert recorded.content(recorded.sys("empty"), 6) == b""


@pytest.mark.parametrize("target", ["/secret", "../../secret"])
def test_content_never_leaves(tree: Path, target: str) -> None:
    """A link that would lead out ends at the recorded root, also the second time."""
    (tree / "sys" / "link").symlink_to(target)
    recorded = host(tree)

    for _ in range(2):
        assert refused(lambda: recorded.content(recorded.sys("link"), 100)) == errno.ENOENT


def test_content_below_a_linked_directory_never_leaves(tree: Path) -> None:
    """A linked directory is re-rooted, and what is remembered of it stays inside."""
    (tree / "sys" / "up").symlink_to("../..")
    (tree / "sys" / "out").symlink_to(str(tree.parent))
    recorded = host(tree)

    assert recorded.list(recorded.sys("up")) == ["sys"]
    assert recorded.list(recorded.sys()) == ["a", "out", "up"]
    for _ in range(2):
        assert recorded.content(recorded.sys("up", "sys", "a", "file"), 100) == b"inside"
        assert refused(lambda: recorded.content(recorded.sys("up", "secret"), 100)) == errno.ENOENT
        assert refused(lambda: recorded.content(recorded.sys("out", "secret"), 100)) == errno.ENOENT
        assert refused(lambda: recorded.list(recorded.sys("out"))) == errno.ENOENT


def test_content_refuses_what_is_too_large(tree: Path) -> None:
    """One byte more than the limit is EFBIG, before it is read."""
    recorded = host(tree)

    assert refused(lambda: recorded.content(recorded.sys("a", "file"), 5)) == errno.EFBIG


def test_content_refuses_what_is_no_file(tree: Path) -> None:
    """A pipe, which would wait, and a directory are EINVAL."""
    os.mkfifo(tree / "sys" / "pipe")
    recorded = host(tree)

    assert refused(lambda: recorded.content(recorded.sys("pipe"), 100)) == errno.EINVAL
    assert refused(lambda: recorded.content(recorded.sys("a"), 100)) == errno.EINVAL


def test_content_of_files_without_size() -> None:
    """Files of the kernel say nothing of their size, and are read to their end."""
    whole = directory.DirHost("/")
    live = live_host.LiveHost()

    assert live.read(live.proc("version")) == whole.content(whole.proc("version"), 1 << 16)
    online = live.sys("devices", "system", "cpu", "online")
    assert live.read(online) == whole.content(online, 1 << 16)
    assert refused(lambda: whole.content(whole.proc("version"), 3)) == errno.EFBIG
    # The kernel gives this one page by page: the first is not all of it.
    assert refused(lambda: whole.content(whole.proc("self", "smaps"), 9000)) == errno.EFBIG


def test_missing_directory_is_not_remembered(tree: Path) -> None:
    """What was not there may come: only directories that were seen are known."""
    recorded = host(tree)
    assert refused(lambda: recorded.content(recorded.sys("new", "file"), 9)) == errno.ENOENT

    (tree / "sys" / "new").symlink_to(str(tree.parent))
    assert refused(lambda: recorded.content(recorded.sys("new", "secret"), 9)) == errno.ENOENT

    (tree / "sys" / "new").unlink()
    (tree / "sys" / "new").mkdir()
    (tree / "sys" / "new" / "file").write_bytes(b"here")
    assert recorded.content(recorded.sys("new", "file"), 9) == b"here"


@pytest.mark.parametrize("names", [("a", "..", "a", "file"), (".", "a", "file"), ("a", "", "file")])
def test_odd_paths(tree: Path, names: tuple[str, ...]) -> None:
    """Dots and empty names mean what they mean to the kernel."""
    recorded = host(tree)

    assert recorded.content(recorded.sys(*names), 100) == b"inside"
    assert recorded.read(recorded.sys(*names)) == b"inside"
