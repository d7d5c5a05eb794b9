"""A recording played again is the machine as it was at each frame, or an error that names it."""

from __future__ import annotations

import errno
import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from koordlet.host.fs import root
from koordlet.host.recording import player
from koordlet.model import errors

HEAD = {"frame": 0, "monotonic": 10.0, "wall": 1000.0}


def archive(path: Path, *frames: object, files: dict[str, str] | None = None) -> str:
    """A recording; a frame is a list of its lines, or any text."""
    members = {f"root/{name}": text for name, text in (files or {"proc/stat": "cpu 1\n"}).items()}
    for number, frame in enumerate(frames):
        lines = [json.dumps(line) for line in frame] if isinstance(frame, list) else [str(frame)]
        members[f"frames/{number}.jsonl"] = "\n".join(lines)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as out:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            out.addfile(member, io.BytesIO(text.encode()))
    target = path / "a.tar.gz"
    target.write_bytes(gzip.compress(plain.getvalue()))
    return str(target)


def at(path: str) -> root.HostPath:
    """A path on the machine."""
    return root.HostRoot.at(path)


def test_files_change_come_and_go(tmp_path: Path) -> None:
    """Text, bytes, links and what vanished; a handle sees the change and then the end."""
    later = [
        {"frame": 1, "monotonic": 11.0, "wall": 1001.0},
        {"path": "/proc/stat", "text": "cpu 2\n"},
        {"path": "/sys/a/b/new", "base64": "/w=="},
        {"path": "/sys/link", "link": "a/b/new"},
    ]
    last = [
        {"frame": 2, "monotonic": 12.0, "wall": 1002.0},
        {"path": "/sys/a/b/new", "gone": True},
        {"path": "/sys/never", "gone": True},
    ]
    recording = player.Recording(archive(tmp_path, [HEAD], later, last))
    host, moments = recording.host, recording.play()
    handle = host.open(at("/proc/stat"))

    assert next(moments).at == 10.0
    assert host.pread(handle, 99) == b"cpu 1\n"
    assert next(moments).wall == 1001.0
    assert (host.pread(handle, 99), host.read(at("/sys/link"))) == (b"cpu 2\n", b"\xff")
    new = host.open(at("/sys/a/b/new"))
    next(moments)
    assert not host.exists(at("/sys/a"))
    with pytest.raises(OSError, match="No such device") as refused:
        host.pread(new, 9)
    assert refused.value.errno == errno.ENODEV
    assert list(moments) == []


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ("not json", "cannot be read"),
        ("[]", "not a JSON object"),
        ("{}", "monotonic"),
        ("", "'monotonic' is missing"),
        ([{**HEAD, "wall": "x"}], "'wall' is 'x', expected seconds"),
        ([{**HEAD, "monotonic": float("nan")}], "'monotonic' is 'nan'"),
        ([{**HEAD, "wall": float("inf")}], "'wall' is 'inf'"),
        ([{**HEAD, "monotonic": 10**400}], "'monotonic' is '1000"),
        ([{**HEAD, "wall": -5}], "'wall' is '-5'"),
        ([HEAD, {"text": "x"}], "path"),
        ([HEAD, {"path": "/sys/../etc/passwd", "text": "x"}], "not a path"),
        ([HEAD, {"path": "relative", "gone": True}], "not a path"),
        ([HEAD, {"path": "/proc/stat/below", "text": "x"}], "is not a directory"),
        ([HEAD, {"path": "/a", "base64": "?"}], "cannot be read"),
    ],
)
def test_a_bad_frame_is_refused_with_its_number(tmp_path: Path, frame: object, why: str) -> None:
    """Half a moment is none: the archive and the frame are named."""
    recording = player.Recording(archive(tmp_path, frame))

    with pytest.raises(errors.ConfigError, match="frame 0") as refused:
        list(recording.play())
    assert why in str(refused.value)


def test_an_archive_without_frames_is_no_recording(tmp_path: Path) -> None:
    """The archive of a machine has one state and no time."""
    recording = player.Recording(archive(tmp_path))

    assert not recording.has_frames
    with pytest.raises(errors.ConfigError, match="no frames"):
        next(recording.play())
