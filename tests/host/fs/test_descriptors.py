"""The limit of descriptors is raised and shared out; small files are read through kept ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.host.fs import descriptors, root
from koordlet.host.recording import roots
from tests.kit import counting

USAGE = "/sys/fs/cgroup/memory/a/memory.usage_in_bytes"

PROGRAM = """
import resource, sys
from koordlet.host.fs import descriptors
soft, hard = (int(word) for word in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(descriptors.share(0.5, 5000), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


class Opening(counting.Counting):
    """Counts how often a file is opened."""

    opened = 0

    def open(self, path: root.HostPath) -> int:
        self.opened += 1
        return super().open(path)


def machine() -> Opening:
    """A machine with one group."""
    return Opening(counting.machine("v1", "a"))


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (64, 64, "32 64 64"),
        (64, 512, "256 512 512"),
        (1024, 20_000, "5000 20000 20000"),
    ],
)
def test_the_soft_limit_is_raised_to_what_is_allowed(soft: int, hard: int, expected: str) -> None:
    """In a process of its own: half of the limit that is reached, at most what was asked for."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.strip() == expected


def test_a_file_is_opened_once_and_read_as_it_is_now() -> None:
    """What the kernel says changes, the descriptor does not."""
    host = machine()
    files = descriptors.KeptFiles(host)
    texts = []
    for text in ("1\n", "22\n", "3\n"):
        host.texts[USAGE] = text
        texts.append(files.read(host.at(USAGE)))

    assert texts == [b"1\n", b"22\n", b"3\n"]
    assert host.opened == 1


def test_a_group_that_went_and_came_is_read_anew() -> None:
    """Its old descriptor answers ENODEV; while it is not there, so does reading."""
    host = machine()
    files = descriptors.KeptFiles(host)
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

    assert len(descriptors.KeptFiles(host).read(host.at(USAGE))) == 10_000


def test_in_a_recording_nothing_is_kept(tmp_path: Path) -> None:
    """There may be another file under the same name the next moment."""
    file = tmp_path / "proc/meminfo"
    file.parent.mkdir()
    host = roots.open_root(str(tmp_path))
    files = descriptors.KeptFiles(host)
    texts = []
    for text in ("one", "other"):
        file.unlink(missing_ok=True)
        file.write_text(text)
        texts.append(files.read(host.proc("meminfo")))

    assert texts == [b"one", b"other"]
