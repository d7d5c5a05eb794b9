"""Files with one line for each device: written line by line, put back device by device."""

from __future__ import annotations

import errno

import pytest

from koordlet.apply import devices
from koordlet.host.fs import root
from koordlet.host.recording import directory
from koordlet.model import action, knob
from koordlet.state import journal

MAX = "/u/a/io.max"


def write(value: str, row: knob.Knob = knob.IO_MAX) -> action.WriteFile:
    """A wish."""
    return action.WriteFile(target=MAX, value=value, policy="p", reason="r", knob=row.name)


def entry(original: str, *values: str, row: knob.Knob = knob.IO_MAX) -> journal.Entry:
    """What the journal knows."""
    return journal.Entry("WriteFile", MAX, "p", original, values, knob=row.name)


class Lines(directory.DirHost):
    """A file that takes one line at a time, and no device 9:9."""

    def __init__(self) -> None:
        super().__init__("/nonexistent")
        self.lines: dict[str, str] = {"7:0": "7:0 rbps=max wbps=max riops=5 wiops=max"}

    def write(self, path: root.HostPath, data: bytes) -> None:
        del path
        [line] = data.decode().splitlines()
        device = line.split()[0]
        if device == "9:9":
            raise root.fail(errno.ENODEV, MAX)
        self.lines[device] = line

    def read(self, path: root.HostPath) -> bytes:
        del path
        return "\n".join(self.lines.values()).encode()


def test_each_device_is_a_write_of_its_own() -> None:
    """Two lines at once would be one line with rubbish behind it; ours are told, not others'."""
    host = Lines()
    shown, problem = devices.write(host, write("8:0 rbps=100\n8:16 wbps=200"))

    assert (shown, problem) == ("8:0 rbps=100\n8:16 wbps=200", "")
    assert "7:0" in host.lines


def test_a_device_that_is_refused_costs_itself() -> None:
    """The others are written, and the answer is told; where all are refused, it is an error."""
    host = Lines()
    shown, problem = devices.write(host, write("9:9 rbps=1\n8:0 rbps=100"))
    assert (shown, problem) == ("8:0 rbps=100", "refused: 9:9 rbps=1: ENODEV")

    with pytest.raises(OSError, match="No such device"):
        devices.write(host, write("9:9 rbps=1"))


@pytest.mark.parametrize(
    ("row", "original", "ours", "now", "back", "foreign"),
    [
        # Nothing was there: our fields become unset.
        (knob.IO_MAX, "", "8:0 rbps=9", "8:0 rbps=9 wbps=max", "8:0 rbps=max", ""),
        (knob.READ_BPS, "", "8:0 9", "8:0 9", "8:0 0", ""),
        (knob.IO_WEIGHT, "default 100", "8:0 50", "default 100\n8:0 50", "8:0 default", ""),
        (knob.IO_COST_QOS, "", "8:0 enable=1", "8:0 enable=1 x=1", "8:0 enable=0 ctrl=auto", ""),
        # Somebody had a line: it comes back, and others' lines were never ours.
        (knob.IO_MAX, "8:0 rbps=5", "8:0 rbps=9", "8:0 rbps=9\n7:0 rbps=1", "8:0 rbps=5", ""),
        # Somebody wrote after us: his stays.
        (
            knob.IO_MAX,
            "",
            "8:0 rbps=9\n8:1 rbps=9",
            "8:0 rbps=7\n8:1 rbps=9",
            "8:1 rbps=max",
            "8:0",
        ),
        # It is as it was.
        (knob.IO_MAX, "8:0 rbps=5", "8:0 rbps=9", "8:0 rbps=5", "", ""),
    ],
)
def test_putting_back(
    *, row: knob.Knob, original: str, ours: str, now: str, back: str, foreign: str
) -> None:
    """Three-way, device by device."""
    assert (back, foreign) == devices.undo(entry(original, ours, row=row), write("", row), now)


def test_a_device_that_is_not_wanted_any_more_goes_back() -> None:
    """While the others of the same file stay limited; what is as it was needs no line."""
    known = entry("8:16 rbps=7", "8:0 rbps=9\n8:16 rbps=9\n8:32 wbps=1")
    made = devices.complete(write("8:0 rbps=9"), known)

    assert isinstance(made, action.WriteFile)
    assert made.value == "8:0 rbps=9\n8:16 rbps=7\n8:32 wbps=max"
    assert write("8:0 rbps=9") == devices.complete(write("8:0 rbps=9"), entry("", "8:0 rbps=9"))
    assert write("8:0 rbps=9") == devices.complete(write("8:0 rbps=9"), None)


def test_another_writers_devices_become_originals_and_ours_do_not() -> None:
    """He changed one device of two: his is what was before, of the other it is what it was."""
    known = entry("8:16 rbps=7", "8:0 rbps=9\n8:16 rbps=9")

    original = devices.original(known, write(""), "8:0 rbps=1\n8:16 rbps=9\n7:0 rbps=3")
    assert original == "8:0 rbps=1\n7:0 rbps=3\n8:16 rbps=7"


def test_other_files_are_none_of_it() -> None:
    """A file with one value has no devices."""
    assert devices.form_of(write("5", knob.CPU_SHARES)) is None
    assert devices.form_of(action.RemoveDir(target="/x", policy="p", reason="r")) is None
