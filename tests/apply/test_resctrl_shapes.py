"""Resource control on processors of every shape: what is written is taken, and all goes again.

Covers: random processors, mount options and settings on the machine in memory.
Does not cover: shapes that were thought of (``test_resctrl``), the real interface (``tests.vm``).
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from tests.kit import images, search
from tests.kit import resctrl as kit
from tests.kit.kernel import KernelHost

NUMBERS = itertools.count()
PARTITIONS = (
    ", partitions: [{name: a, ways: 60, classes: [LSR, LS]},"
    " {name: b, ways: 40, bandwidth: 50, classes: [BE]}]"
)


@st.composite
def processors(draw: st.DrawFn) -> str:
    """What an emulated processor has, in the emulator's words."""
    words = [draw(st.sampled_from(["intel", "amd"]))]
    words += draw(st.lists(st.sampled_from(["cdp", "l2", "nol3", "nomba", "nomon"]), unique=True))
    words += [f"cbm={draw(st.sampled_from([1, 2, 3, 11, 12, 20, 31, 32]))}"]
    words += [f"cos={draw(st.sampled_from([1, 2, 3, 4, 16]))}"]
    words += [f"mba={draw(st.sampled_from([1, 50, 77, 90, 99]))}", f"rmids={draw(RMIDS)}"]
    return ",".join(words)


RMIDS = st.sampled_from([1, 3, 8, 64])


@st.composite
def sections(draw: st.DrawFn) -> str:
    """What an operator asks for, beside the mode."""
    first = draw(st.integers(0, 99))
    last = draw(st.integers(first + 1, 100))
    bandwidth = draw(st.integers(1, 100))
    text = (
        f", podMonitoring: {draw(st.sampled_from(['true', 'false']))}, beClass:"
        f" {{catRangeStartPercent: {first}, catRangeEndPercent: {last}, mbaPercent: {bandwidth}}}"
    )
    return text + draw(st.sampled_from(["", PARTITIONS, ", peerNumbers: true", ", tighten: true"]))


def machine(processor: str, options: str) -> KernelHost:
    """Mounted so, or as it can be, or not at all."""
    for mount in (options, "", None):
        with contextlib.suppress(OSError):
            return kit.machine(processor, mount=mount)
    raise AssertionError(processor)


@search.examples(3)
@hypothesis.given(
    processor=processors(),
    options=st.sampled_from(["", "cdp", "cdpl2", "mba_MBps"]),
    section=sections(),
)
def test_no_shape_is_written_wrongly(ram: Path, processor: str, options: str, section: str) -> None:
    """The kernel refuses nothing but more groups than it has room for; nothing of ours stays."""
    site = kit.site(machine(processor, options), ram / str(next(NUMBERS)), section)
    before = site.image()
    site.settle()
    refused = [call for call in site.host.calls if call.errno and call.kind != "mkdir"]
    assert refused == []
    count = len(site.host.calls)
    site.settle()
    assert count == len(site.host.calls), "a quiet pass writes nothing"

    done = site.restore()
    assert (done.left, done.failed) == ((), ())
    assert images.difference(before, site.image()) == {}
