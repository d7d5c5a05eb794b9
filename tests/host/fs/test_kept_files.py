"""Files that are read at every tick through a descriptor that is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.host.fs import kept_files, root
from koordlet.host.recording import roots
from tests.kit import counting

USAGE = "/sys/fs/cgroup/memory/a/memory.usage_in_bytes"


class Opening(counting.Counting):
    """Counts how often a file is opened."""

    opened = 0

    def open(self, path: root.HostPath) -> int:
        self.opened += 1
        return super().open(path)


def machine() -> Opening:
    """A machine with one group."""
    return Opening(counting.machine("v1", "a"))


def test_a_file_is_opened_once_and_read_as_it_is_now() -> None:
    """What the kernel says changes, the descriptor does not."""
    host = machine()
    files = kept_files.KeptFiles(host)
    found = []
    for text in ("1\n", "22\n", "3\n"):
        host.texts[USAGE] = text
        found.append(files.read(host.at(USAGE)))

    assert found == [b"1\n", b"22\n", b"3\n"]
    assert host.opened == 1


def test_a_group_that_went_and_came_is_read_anew() -> None:
    """Its old descriptor answers ENODEV; while it is not there, so does reading."""
    host = machine()
    files = kept_files.KeptFiles(host)
    host.texts[USAGE] = "1\n"
    assert files.read(host.at(USAGE)) == b"1\n"

    host.texts[USAGE] = None
    with pytest.raises(OSError, match="No such device"):
        files.read(host.at(USAGE))
    host.texts[USAGE] = "2\n"

    assert files.read(host.at(USAGE)) == b"2\n"


def test_a_file_of_more_than_a_page_is_read_whole() -> None:
    """It is cut nowhere."""
    host = machine()
    host.texts[USAGE] = "1" * 10_000

    assert len(kept_files.KeptFiles(host).read(host.at(USAGE))) == 10_000


def test_in_a_recording_nothing_is_kept(tmp_path: Path) -> None:
    """There may be another file under the same name the next moment."""
    file = tmp_path / "proc/meminfo"
    file.parent.mkdir()
    host = roots.open_root(str(tmp_path))
    files = kept_files.KeptFiles(host)
    found = []
    for text in ("one", "other"):
        file.unlink(missing_ok=True)
        file.write_text(text)
        found.append(files.read(host.proc("meminfo")))

    assert found == [b"one", b"other"]
