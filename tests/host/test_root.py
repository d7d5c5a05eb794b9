"""A recorded directory answers as the machine would, is read-only, and is never left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from koordlet.host import root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A recorded root with a secret beside it."""
    (tmp_path / "secret").write_text("outside", encoding="utf-8")
    top = tmp_path / "top"
    (top / "sys" / "a").mkdir(parents=True)
    (top / "sys" / "a" / "file").write_text("inside", encoding="utf-8")
    return top


def host(tree: Path) -> root.DirHost:
    """The recorded machine."""
    return root.DirHost(str(tree))


def refused(call: Callable[[], object]) -> int | None:
    """The errno that a call fails with, ``None`` if it does not."""
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_paths_are_those_of_the_machine() -> None:
    """Paths are born absolute, as on the machine, whatever the root."""
    one = root.LiveHost()

    assert ("/sys/a/b", "/proc/stat", "/etc/x") == (
        one.sys("a", "b"),
        one.proc("stat"),
        one.etc("x"),
    )
    assert "/sys/a/b/c" == one.below(one.sys("a/"), "", "/b/", "c")


def test_at_takes_absolute_paths_only() -> None:
    """A path that the machine told us is normalised; a relative one is refused."""
    assert "/a/c" == root.HostRoot.at("//a/b/../c")
    with pytest.raises(ValueError, match="absolute"):
        root.HostRoot.at("a")


def test_reads(tree: Path) -> None:
    """Files, listings and kinds are those of the tree."""
    one = host(tree)

    assert b"inside" == one.read(one.sys("a", "file"))
    assert ["file"] == one.list(one.sys("a"))
    assert root.Kind.DIRECTORY is one.stat(one.sys("a")).kind
    assert (True, False) == (one.exists(one.sys("a")), one.exists(one.sys("b")))
    assert one.live is False


def test_pread_starts_at_the_beginning_each_time(tree: Path) -> None:
    """A handle can be read again and again."""
    one = host(tree)
    handle = one.open(one.sys("a", "file"))

    assert [b"ins", b"inside"] == [one.pread(handle, 3), one.pread(handle, 100)]
    one.close(handle)


@pytest.mark.parametrize(
    "target",
    ["/secret", "../../secret", "../../../../../../secret", "/../secret", "a/../../../secret"],
)
def test_link_never_leaves(tree: Path, target: str) -> None:
    """A link that would lead out ends at the recorded root, where nothing is."""
    (tree / "sys" / "link").symlink_to(target)
    one = host(tree)

    assert errno.ENOENT == refused(lambda: one.read(one.sys("link")))


def test_directory_link_never_leaves(tree: Path) -> None:
    """A linked directory on the way is re-rooted, too."""
    (tree / "sys" / "up").symlink_to("../..")
    one = host(tree)

    assert errno.ENOENT == refused(lambda: one.read(one.sys("up", "secret")))
    assert ["sys"] == one.list(one.sys("up"))


def test_absolute_link_starts_at_the_recorded_root(tree: Path) -> None:
    """``/sys/a`` in a recording means the recorded one."""
    (tree / "sys" / "link").symlink_to("/sys/a")
    one = host(tree)

    assert b"inside" == one.read(one.sys("link", "file"))
    assert ("/sys/a", root.Kind.LINK) == (
        one.readlink(one.sys("link")),
        one.stat(one.sys("link"), follow=False).kind,
    )


def test_link_circle_ends(tree: Path) -> None:
    """Links in a circle are ELOOP."""
    (tree / "sys" / "x").symlink_to("y")
    (tree / "sys" / "y").symlink_to("x")
    one = host(tree)

    assert errno.ELOOP == refused(lambda: one.read(one.sys("x")))


def test_recording_is_read_only(tree: Path) -> None:
    """Nothing that changes anything works on a recording."""
    one = host(tree)
    calls: list[Callable[[], object]] = [
        lambda: one.write(one.sys("a", "file"), b"x"),
        lambda: one.mkdir(one.sys("new")),
        lambda: one.rmdir(one.sys("a")),
        lambda: one.mount("none", one.sys("a"), "tmpfs", ""),
        lambda: one.unmount(one.sys("a")),
    ]

    assert [errno.EROFS] * 5 == [refused(call) for call in calls]
    assert b"inside" == one.read(one.sys("a", "file"))
    assert (True, False) == (one.access(one.sys("a"), os.R_OK), one.access(one.sys("a"), os.W_OK))


def test_giant_file_is_refused(tree: Path) -> None:
    """A file beyond the limit is EFBIG, not memory."""
    with (tree / "sys" / "giant").open("wb") as file:
        file.truncate(root.MAX_READ + (1 << 20))
    one = host(tree)

    assert errno.EFBIG == refused(lambda: one.read(one.sys("giant")))
