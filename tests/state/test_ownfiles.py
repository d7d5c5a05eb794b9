"""Files of our own: only where nobody else can have put them or can change them."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.state import ownfiles
from tests.kit import search

#: Nobody's and somebody's: ids that no account of ours has.
STRANGER = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to somebody else")


def test_what_is_missing_is_made(ram: Path) -> None:
    """Every missing directory on the way is made, and nobody else may write there."""
    before = os.umask(0)
    try:
        ownfiles.directory(ram / "a" / "b")
    finally:
        os.umask(before)

    assert [(ram / folder).stat().st_mode & 0o777 for folder in ("a", "a/b")] == [0o755, 0o755]


def test_links_of_ours_are_followed(ram: Path) -> None:
    """A link that root or we made leads on, as /var/run does, through ``..`` as well."""
    (ram / "real").mkdir(0o700)
    (ram / "link").symlink_to("./real/../real")
    ownfiles.directory(ram / "link" / "state")

    assert (ram / "real" / "state").is_dir()


def test_a_look_makes_nothing(ram: Path) -> None:
    """What is missing stays so for whoever only takes away; what is there is checked before."""
    with pytest.raises(FileNotFoundError):
        ownfiles.directory(ram / "a" / "b", make=False)
    ram.chmod(0o777)
    with pytest.raises(ownfiles.UntrustedError):
        ownfiles.directory(ram / "a" / "b", make=False)

    assert not (ram / "a").exists()


def test_links_in_a_circle(ram: Path) -> None:
    """They end as in the kernel."""
    (ram / "a").symlink_to("b")
    (ram / "b").symlink_to("a")
    with pytest.raises(OSError, match="levels of symbolic links") as refused:
        ownfiles.directory(ram / "a")

    assert refused.value.errno == errno.ELOOP


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o775, 0o1777])
def test_a_directory_that_others_may_write(ram: Path, mode: int) -> None:
    """The last directory is refused with the way out, whatever its sticky bit says."""
    place = ram / "state"
    place.mkdir()
    if mode & 0o020 and os.geteuid() == 0:
        os.chown(place, 0, STRANGER)
    place.chmod(mode)
    if mode == 0o775 and os.geteuid() != 0:
        pytest.skip("whether its group is ours alone depends on the account")

    with pytest.raises(ownfiles.UntrustedError) as refused:
        ownfiles.directory(place)
    assert str(place) == refused.value.filename
    assert f"chmod go-w {place}" in refused.value.fix
    assert "--state-dir" in refused.value.fix


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_directory_above_that_others_may_write(ram: Path, mode: int, refused: bool) -> None:
    """It is refused, unless a sticky bit protects what is ours in it, as in /tmp."""
    above = ram / "above"
    above.mkdir()
    above.chmod(mode)
    if not refused:
        ownfiles.directory(above / "state")
        assert (above / "state").is_dir()
        return
    with pytest.raises(ownfiles.UntrustedError) as caught:
        ownfiles.directory(above / "state")
    assert str(above) == caught.value.filename


@as_root
def test_somebody_elses_directory(ram: Path) -> None:
    """Root trusts no directory of another user, nor one in it, nor a link of his to root's."""
    theirs, ours = ram / "theirs", ram / "ours"
    theirs.mkdir()
    (theirs / "inside").mkdir()
    os.chown(theirs, STRANGER, STRANGER)
    ours.mkdir()
    (ram / "link").symlink_to(ours)
    os.chown(ram / "link", STRANGER, STRANGER, follow_symlinks=False)

    for place in (theirs, theirs / "inside", theirs / "new", ram / "link"):
        with pytest.raises(ownfiles.UntrustedError, match=f"belongs to uid {STRANGER}"):
            ownfiles.directory(place)
    assert not (theirs / "new").exists()


@as_root
def test_a_group_of_the_system_above(ram: Path) -> None:
    """A group of the system may write above a log directory, as on Ubuntu; one of users may not."""
    above = ram / "log"
    above.mkdir()
    above.chmod(0o775)
    os.chown(above, 0, 104)
    ownfiles.directory(above / "koordlet")
    os.chown(above, 0, STRANGER)

    with pytest.raises(ownfiles.UntrustedError):
        ownfiles.directory(above / "koordlet")


def _link(place: Path) -> None:
    place.with_name("target").write_text("precious")
    place.symlink_to("target")


def _second_name(place: Path) -> None:
    place.with_name("target").write_text("precious")
    os.link(place.with_name("target"), place)


def _listening(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))


def _for_everybody(place: Path) -> None:
    place.write_text("precious")
    place.chmod(0o666)


def _given_away(place: Path) -> None:
    place.write_text("precious")
    os.chown(place, STRANGER, STRANGER)


@pytest.mark.parametrize(
    "make",
    [
        _link,
        _second_name,
        os.mkfifo,
        Path.mkdir,
        _listening,
        _for_everybody,
        pytest.param(_given_away, marks=as_root),
    ],
)
def test_a_file_that_is_none_of_ours(ram: Path, make: Callable[[Path], object]) -> None:
    """It is opened neither to append nor (unless it has two names) to read, and nobody waits."""
    make(ram / "file")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with pytest.raises(OSError, match=r".") as refused:
        ownfiles.open_file(ram / "file", flags)
    if make is not _second_name:
        with pytest.raises(OSError, match=r"."):
            ownfiles.read(ram / "file")

    assert str(ram / "file") == refused.value.filename
    assert not (ram / "target").exists() or (ram / "target").read_text() == "precious"


@pytest.mark.parametrize("make", [_link, _second_name, os.mkfifo, _for_everybody])
def test_a_new_file_takes_the_name(ram: Path, make: Callable[[Path], object]) -> None:
    """Whatever has the name goes, and what it led to stays as it was."""
    make(ram / "file")
    handle = ownfiles.fresh(ram / "file")
    os.write(handle, b"ours")
    os.close(handle)

    assert ownfiles.read(ram / "file") == b"ours"
    assert not (ram / "target").exists() or (ram / "target").read_text() == "precious"


def test_a_file_beyond_its_bound(ram: Path) -> None:
    """It is read no further than the bound."""
    (ram / "file").write_bytes(b"x" * 11)
    (ram / "file").chmod(0o600)
    with pytest.raises(OSError, match="larger") as refused:
        ownfiles.read(ram / "file", most=10)

    assert refused.value.errno == errno.EFBIG
    assert ownfiles.read(ram / "file", most=11) == b"x" * 11


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1" + b"0" * 5000,
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 100_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_we_never_wrote(text: bytes) -> None:
    """Damage, numbers beyond range and deep nesting are one kind of error."""
    with pytest.raises(ValueError, match=r"."):
        ownfiles.load_json(text)


@search.examples(100)
@hypothesis.given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=8)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=20,
    )
)  # fmt: skip
def test_everything_else_comes_back(document: object) -> None:
    """What ``json.dumps`` makes of plain values is read as it was."""
    assert document == ownfiles.load_json(json.dumps(document).encode())
