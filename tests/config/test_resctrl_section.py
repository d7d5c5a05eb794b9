"""The section ``policies.resctrl``: the peer's defaults, ranges and partitions that make sense."""

from __future__ import annotations

import pytest

from koordlet.config import loader, resctrl_section, schema
from koordlet.model import errors
from tests.config.refusing import Write


def load(write: Write, text: str) -> resctrl_section.Resctrl:
    """The section with this inside."""
    return loader.load(write(f"policies: {{resctrl: {{{text}}}}}"), {}, {}).config.policies.resctrl


def test_the_peers_defaults() -> None:
    """Latency-sensitive classes have every way, best-effort work thirty percent; only shown."""
    section = schema.defaults().policies.resctrl

    assert section.mode == "shadow"
    assert [
        of_class.cat_range_end_percent
        for of_class in (section.lsr_class, section.ls_class, section.be_class)
    ] == [100, 100, 30]
    assert {
        of_class.mba_percent for of_class in (section.lsr_class, section.ls_class, section.be_class)
    } == {100}


def test_a_whole_section(write: Write) -> None:
    """The peer's names count, and two partitions of the whole are taken in order."""
    parts = "[{name: a, ways: 60, classes: [LSR, LS]}, {name: b, ways: 40, classes: [BE]}]"
    section = load(
        write, f"beClass: {{catRangeEndPercent: 50, mbaPercent: 40}}, partitions: {parts}"
    )

    assert (section.be_class.cat_range_end_percent, section.be_class.mba_percent) == (50, 40)
    assert [(partition.name, partition.classes) for partition in section.partitions] == [
        ("a", ("LSR", "LS")),
        ("b", ("BE",)),
    ]


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("lsClass: {catRangeStartPercent: 50, catRangeEndPercent: 50}", "is empty"),
        ("beClass: {catRangeStartPercent: 40}", "is empty"),
        ("lsClass: {mbaPercent: 0}", "mbaPercent"),
        ("lsClass: {catRangeEndPercent: 101}", "catRangeEndPercent"),
        ("lsClass: {mbaPercent: '50'}", "mbaPercent"),
        ("partitions: [{name: a, ways: 60}, {name: b, ways: 41}]", "101 %"),
        ("partitions: [{name: a, ways: 1, classes: [BE, BE]}]", "BE is in more than one"),
        ("partitions: [{name: '', ways: 1}]", "name"),
        ("partitions: [{name: a, ways: 1, classes: [LSE]}]", "classes"),
        ("mountOptions: [cdp, wrong]", "mountOptions"),
        ("bandwidth: 0", "bandwidth"),
        ("limits: {podMonitors: -1}", "podMonitors"),
    ],
)
def test_what_makes_no_sense(write: Write, text: str, culprit: str) -> None:
    """It is refused, naming the value or its key."""
    with pytest.raises(errors.ConfigError, match=culprit):
        load(write, text)
