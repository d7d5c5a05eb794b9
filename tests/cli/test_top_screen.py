"""The screen of ``top``: what is in it, in 80 columns, whatever the document lacks."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from rich import console

from koordlet.cli import top_screen
from koordlet.report import node_json
from tests.kit import views
from tests.report import test_usage_families


def drawn(found: top_screen.Document, **how: Any) -> list[str]:
    """The lines of a screen of 80 columns."""
    show = dataclasses.replace(top_screen.Show(source="test"), **how)
    out = io.StringIO()
    console.Console(file=out, width=80, force_terminal=False).print(top_screen.screen(found, show))
    return out.getvalue().splitlines()


def document() -> top_screen.Document:
    """A node with a pod and a host application."""
    return node_json.document(test_usage_families.shown(), "1.2.3")


def test_what_is_shown() -> None:
    """Node, pools with their CPUs, workloads with what they use."""
    text = "\n".join(drawn(document()))

    for words in ("n1", "CPU 3.00 of 7", "reserved", "LS pool", "BE pool", "default/nginx"):
        assert words in text, text
    assert "1.50" in text
    assert "25%" in text
    assert "1.0M" in text


@pytest.mark.parametrize("height", [5, 24, 10_000])
def test_eighty_columns(height: int) -> None:
    """No line is longer, and a terminal is not overfull."""
    many = node_json.document(views.view(views.pods(300)), "1")
    lines = drawn(many, height=height, source="x" * 200)

    assert max(map(len, lines)) <= 80
    assert height < 20 or len(lines) <= height


def test_order_and_filter() -> None:
    """Most first, equal ones by name; the filter is looked for in name, namespace and class."""
    rows = [
        {"namespace": "a", "name": "x", "qos": "LS", "cpuCores": 1.0, "usage": {"memoryBytes": 5}},
        {"namespace": "b", "name": "y", "qos": "BE", "cpuCores": 2.0, "usage": {"memoryBytes": 4}},
        {"namespace": "c", "name": "z", "qos": "BE", "cpuCores": None, "usage": {}},
    ]
    every: list[dict[str, Any]] = [{"sort": how} for how in "cmn"]
    every += [{"filter": "be"}, {"filter": "a/"}]
    names = [
        [one["name"] for one in top_screen.chosen({"workloads": rows}, top_screen.Show(**how))]
        for how in every
    ]

    assert ["yxz", "xyz", "xyz", "yz", "x"] == ["".join(map(str, one)) for one in names]


def test_network_is_shown() -> None:
    """In and out of the node, of each class that uses anything, of each workload; and sorted by."""
    both = ("receivedBytesPerSecond", "sentBytesPerSecond")
    link = dict(zip(both, (2 << 20, 1 << 10), strict=True))
    links = {"eth0": link, "eth1": link, "wg0": dict.fromkeys(both)}
    busy = {"cpuCores": 1.5, "memoryBytes": 1 << 30, "network": dict.fromkeys(both, 5 << 20)}
    host = {"cpuCores": 0.5, "memoryBytes": 1 << 20, "network": dict.fromkeys(both)}
    idle = {"cpuCores": 0.0, "memoryBytes": 0, "network": dict.fromkeys(both)}
    rows = [
        {"namespace": "a", "name": "x", "qos": "LS", "usage": host},
        {"namespace": "a", "name": "y", "qos": "LS", "usage": busy},
    ]
    usage = {"links": links, "shares": {"LSE": idle, "LS": busy, "system": host}}
    found = {"usage": usage, "workloads": rows}
    lines = drawn(found, sort="w")

    assert any(line.endswith("net in/out 4.0M/2.0K") for line in lines)
    assert any(
        "LS 1.50 1.0G 10.0M   system 0.50 1.0M" in line and "LSE" not in line for line in lines
    )
    shown = [line for line in lines if line.startswith("a/")]
    assert ["a/y", "a/x"] == [line.split()[0] for line in shown]
    assert "10.0M" in shown[0]
    assert any("netv" in line for line in lines)


def test_hostile_names_do_not_steer() -> None:
    """Markup and control characters of a name are shown, not obeyed."""
    rows = [{"namespace": "[red]", "name": "\x1b[2Jx", "qos": "LS"}]
    text = "\n".join(drawn({"name": "[b]n", "workloads": rows}))

    assert "[red]/\\x1b[2Jx" in text
    assert "[b]n" in text
    assert "\x1b" not in text


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@hypothesis.given(
    part=st.sampled_from(["usage", "pools", "workloads", "name", "signals", "mode"]), value=_JSON
)
def test_an_agent_of_another_version(part: str, value: object) -> None:
    """Whatever a part of the document is, the rest is shown."""
    assert drawn({**document(), part: value})
    assert drawn({part: value})


@pytest.mark.parametrize("sort", sorted(top_screen.SORTS))
def test_every_order(sort: str) -> None:
    """Each column can be sorted by, also where values are missing."""
    assert 2 == len(top_screen.chosen(document(), top_screen.Show(sort=sort)))


def test_terminals_without_bars() -> None:
    """They get digits: tenths of a CPU."""
    assert not set("▁▂▃▄▅▆▇█") & set("".join(drawn(document(), bars=False)))
