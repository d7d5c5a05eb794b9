"""The screen of ``top``: what is in it, in 80 columns, whatever the document lacks."""

from __future__ import annotations

import io
import re
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from rich import console

from koordlet.cli import output, top_screen, top_workloads
from koordlet.report import documents, node_json
from tests.kit import busy_views, views


def draw_screen(document: documents.Document, show: top_screen.Show) -> list[str]:
    """Draw a screen; its lines."""
    out = io.StringIO()
    screen = top_screen.screen(document, show)
    console.Console(file=out, width=show.width, force_terminal=False).print(screen)
    return out.getvalue().splitlines()


def draw(document: documents.Document, **changes: Any) -> list[str]:
    """Draw a screen of 80 columns with these changes."""
    return draw_screen(document, top_screen.Show(**{"source": "test", **changes}))


def node_document() -> documents.Document:
    """A node with a pod and a host application."""
    return node_json.document(busy_views.busy_view(), "1.2.3")


def test_the_help_is_whole_on_the_smallest_terminal() -> None:
    """All of its lines fit into 24 of 80 columns; nothing is cut."""
    lines = draw(node_document(), help=True)

    assert [line for line in lines if line in top_screen.HELP.splitlines()] == (
        top_screen.HELP.splitlines()
    )
    assert len(lines) <= 24


def test_what_is_shown() -> None:
    """Node, pools with their CPUs, workloads with what they use."""
    text = "\n".join(draw(node_document()))

    for words in ("n1", "CPU 3.00 of 7", "by class", "reserved", "LS and BE pool", "default/nginx"):
        assert words in text, text
    assert "1.50" in text
    assert "25%" in text
    assert "1.0M" in text


@pytest.mark.parametrize("height", [5, 24, 10_000])
def test_eighty_columns(height: int) -> None:
    """No line is longer, and a terminal is not overfull."""
    many = node_json.document(views.view(views.pods(300)), "1")
    lines = draw(many, height=height, source="x" * 200)

    assert max(map(len, lines)) <= 80
    assert height < 20 or len(lines) <= height


def test_the_chosen_workload_is_always_shown() -> None:
    """Nothing scrolls while all fit; beyond that the list follows the cursor."""
    several = node_json.document(views.view(views.pods(60)), "1")
    names = [str(row["name"]) for row in top_workloads.chosen(several, "c", "")]
    few = node_json.document(views.view(views.pods(3)), "1")

    assert draw(few, cursor=2) == draw(few, cursor=0)
    assert any(names[0] in line for line in draw(several, cursor=5))
    far = draw(several, cursor=59)
    assert any(names[59] in line for line in far)
    assert not any(names[0] in line for line in far)


@pytest.mark.parametrize("size", [(80, 24), (150, 60)])
def test_a_place_of_the_screen_is_what_is_shown_there(size: tuple[int, int]) -> None:
    """Each row, head and CPU that is drawn is found where it is, and nothing beside them."""
    many = node_json.document(views.view(views.pods(60)), "1")
    show = top_screen.Show(width=size[0], height=size[1], cursor=9)
    lines = draw_screen(many, show)

    def clicked(column: int, line: int) -> dict[str, Any]:
        return dict(top_screen.pointed(many, show, (column, line)))

    [head] = [n for n, line in enumerate(lines) if "CPU▾" in line]
    assert clicked(lines[head].index("CPU▾"), head) == {"sort": "c"}
    assert clicked(lines[head].index("workload"), head) == {"sort": "n"}
    names = [str(row["name"]) for row in top_workloads.chosen(many, show.sort, show.filter)]
    below = range(head + 1, len(lines) - 1, 5)
    assert [names[clicked(0, n)["row"]] in lines[n] for n in below] == [True] * len(below)
    [grid] = [n for n, line in enumerate(lines) if line.startswith("CPUs ")]
    columns = range(10, len(lines[grid].rstrip()))
    assert [clicked(column, grid) for column in columns] == [{"cpu": n} for n in range(7)]
    assert clicked(0, 0) == clicked(3, 999) == {}


def test_an_explanation_takes_the_place_of_the_workloads() -> None:
    """As much of it as there is room for; the keys stay."""
    lines = draw(node_document(), detail=tuple(f"line {n}" for n in range(99)))

    assert "line 0" in lines
    assert not any("default/nginx" in line for line in lines)
    assert any("more lines" in line for line in lines)
    assert len(lines) <= 24
    assert "sort c" in lines[-1]


def test_a_long_name_of_the_node_leaves_room_for_the_mode() -> None:
    """The name ends with an ellipsis; what follows it is there."""
    document = {**node_document(), "name": "n" * 253, "mode": "observe"}

    assert "n…  observe  agent" in draw(document, source="agent at 127.0.0.1:9316")[0]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_explains_or_warns_is_shown_whole(width: int) -> None:
    """A line that is longer than the terminal goes on in the next one; numbers above give way."""
    reasons = [f"batch-demo/job{n}" for n in range(12)]
    why = "  holds CPUs 4-5 alone: " + " ".join(reasons)
    document = {**node_document(), "banner": ["Best-effort work is not limited: " + why]}
    warned = " ".join(draw(document, width=width, height=40))
    lines = draw(node_document(), detail=("shop/db", *[why] * 2), width=width)

    assert [reason for reason in reasons if reason not in warned] == []
    assert max(map(len, lines)) <= width
    assert " ".join(lines).count(reasons[11]) == 2
    assert len(lines) <= 24


def test_a_recording_has_a_time_bar() -> None:
    """It says which moment of how many is shown."""
    first, last = (draw(node_document(), moment=n, moments=5)[1] for n in (0, 4))

    assert first.endswith(" 1 of 5")
    assert last.endswith(" 5 of 5")
    assert first.index("●") == 0 < last.index("●")


def test_the_time_bar_says_when_and_a_click_on_it_is_a_moment() -> None:
    """Its ends are the first and the last moment."""
    show = top_screen.Show(moment=2, moments=5)
    bar = draw(node_document(), moment=2, moments=5)[1]
    places = [
        top_screen.pointed(node_document(), show, (column, 1)).get("moment")
        for column in (0, bar.index("●"), bar.rindex("─"), len(bar) - 1)
    ]

    assert re.search(r" \d\d:\d\d:\d\d  3 of 5$", bar)
    assert places == [0, 2, 4, None]
    for when in (None, "yesterday", 1e300, float("nan")):
        old = {**node_document(), "observedAt": when}
        assert draw(old, moment=2, moments=5)[1].endswith("─ -  3 of 5")


@pytest.mark.parametrize(
    ("height", "workloads", "lines"),
    [(18, 2, 0), (24, 2, 2), (40, 2, 8), (28, 60, 1), (100, 2, 20), (100, 60, 14)],
)
def test_history_is_as_high_as_there_is_room(height: int, workloads: int, lines: int) -> None:
    """Of each class; from 28 lines on in any case, though workloads would fill the screen."""
    document = node_json.document(views.view(views.pods(workloads)), "1")
    rows = draw(document, history=({"LS": 1.0, "BE": 2.0},) * 9, height=height)

    assert sum("\u2800" <= row[-1:] <= "\u28ff" for row in rows) == 2 * lines
    assert len(rows) <= height


def test_what_each_workload_used_lately_is_drawn_where_there_is_room() -> None:
    """To one scale: who used half as much is half as high."""
    document = node_json.document(views.view(views.pods(2)), "1")
    first, second = (
        f"{row['namespace']}/{row['name']}" for row in documents.rows(document, "workloads")
    )
    show = top_screen.Show(width=200, height=60, workloads=({first: 2.0, second: 1.0},) * 2)
    lines = draw_screen(document, show)

    ends = [
        next(row for row in lines if row.startswith(name)).strip()[-1] for name in (first, second)
    ]
    assert ends == ["⣿", "⣤"]
    assert not any("CPU lately" in row for row in draw(document, workloads=show.workloads))


def test_order_and_filter() -> None:
    """Most first, equal rows by name; the filter is looked for in name, namespace and class."""
    rows = [
        {"namespace": "a", "name": "x", "qos": "LS", "cpuCores": 1.0, "usage": {"memoryBytes": 5}},
        {"namespace": "b", "name": "y", "qos": "BE", "cpuCores": 2.0, "usage": {"memoryBytes": 4}},
        {"namespace": "c", "name": "z", "qos": "BE", "cpuCores": None, "usage": {}},
    ]
    orders = [("c", ""), ("m", ""), ("n", ""), ("c", "be"), ("c", "a/")]
    names = [
        [row["name"] for row in top_workloads.chosen({"workloads": rows}, *words)]
        for words in orders
    ]

    assert ["".join(map(str, row)) for row in names] == ["yxz", "xyz", "xyz", "yz", "x"]


def test_network_is_shown() -> None:
    """In and out of the node, of each class that uses anything, of each workload; and sorted by."""
    directions = ("receivedBytesPerSecond", "sentBytesPerSecond")
    link = dict(zip(directions, (2 << 20, 1 << 10), strict=True))
    links = {"eth0": link, "eth1": link, "wg0": dict.fromkeys(directions)}
    busy = {"cpuCores": 1.5, "memoryBytes": 1 << 30, "network": dict.fromkeys(directions, 5 << 20)}
    host = {"cpuCores": 0.5, "memoryBytes": 1 << 20, "network": dict.fromkeys(directions)}
    idle = {"cpuCores": 0.0, "memoryBytes": 0, "network": dict.fromkeys(directions)}
    rows = [
        {"namespace": "a", "name": "x", "qos": "LS", "usage": host},
        {"namespace": "a", "name": "y", "qos": "LS", "usage": busy},
    ]
    usage = {"links": links, "shares": {"LSE": idle, "LS": busy, "system": host}}
    document = {"usage": usage, "workloads": rows}
    lines = draw(document, sort="w")

    assert any(line.endswith("net in/out 4.0M/2.0K") for line in lines)
    assert any(
        "LS 1.50 1.0G 10.0M   system 0.50 1.0M" in line and "LSE" not in line for line in lines
    )
    workloads = [line for line in lines if line.startswith("a/")]
    assert [line.split()[0] for line in workloads] == ["a/y", "a/x"]
    assert "10.0M" in workloads[0]
    assert any("net▾" in line for line in lines)


def test_hostile_names_do_not_steer() -> None:
    """Markup and control characters of a name are shown, not obeyed."""
    rows = [{"namespace": "[red]", "name": "\x1b[2Jx", "qos": "LS"}]
    text = "\n".join(draw({"name": "[b]n", "workloads": rows}))

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
    assert draw({**node_document(), part: value})
    assert draw({part: value})


@pytest.mark.parametrize("sort", sorted(top_workloads.SORTS))
def test_every_order(sort: str) -> None:
    """Each column can be sorted by, also where values are missing."""
    assert len(top_workloads.chosen(node_document(), sort, "")) == 2


def test_terminals_without_bars() -> None:
    """They get digits: tenths of a CPU."""
    assert not set("▁▂▃▄▅▆▇█") & set("".join(draw(node_document(), bars=False)))


@pytest.mark.parametrize("name", ["[red]x", r"a\[/b]", "a\\", r"back\[bold]", "\x1b[2J", "a\nb"])
def test_a_name_is_no_markup(name: str) -> None:
    """Whatever a workload, the node or a problem is called, it is shown, and styles nothing."""
    document = {
        "name": name,
        "mode": name,
        "workloads": [{"namespace": "d", "name": name, "qos": name, "cpus": name}],
        "pools": {"claims": [{"owner": name, "holder": name, "cpus": "0"}]},
        "bestEffort": {"policy": name, "reason": name},
    }
    lines = draw(document, problem=name, filter="d/", source=name)

    shown = output.visible(name)
    assert any(line.startswith(f"d/{shown}") for line in lines), lines
    assert any(line.startswith(f"{shown}  {shown}  {shown}") for line in lines), lines


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpus": {"online": None}},
        {"cpus": {"online": "a-b"}},
        {"cpus": {"online": "0-9999999"}},
        {"cpus": {"online": "0"}, "usage": {"cpus": {"0": float("nan")}}},
        {"pools": {"claims": [{"cpus": None}], "shared": [{"kind": "BE", "cpus": 7.5}]}},
    ],
)
def test_values_that_make_no_sense(wrong: documents.Document) -> None:
    """What an agent says may be anything: what cannot be read is not known."""
    assert draw(wrong)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (40, 6), (200, 60)])
def test_workloads_have_room(width: int, height: int) -> None:
    """On a machine of many CPUs and pools, too: what is above the workloads gives way."""
    cpus = {str(cpu): 0.5 for cpu in range(256)}
    claims = [{"owner": "LSE", "holder": f"d/p{n}", "cpus": str(n)} for n in range(40)]
    document = {
        "cpus": {"online": "0-255"},
        "usage": {"cpus": cpus},
        "pools": {"claims": claims, "shared": [{"kind": "LS", "cpus": "40-255"}]},
        "workloads": [
            {"namespace": "d", "name": f"w{n}", "cpuCores": 1.25, "usage": {}} for n in range(99)
        ],
    }
    lines = draw_screen(document, top_screen.Show(height=height, width=width))

    assert height >= len(lines)
    assert len([line for line in lines if line.startswith("d/w") and "1.25" in line]) >= 3
    assert "sort c" in lines[-1]


def test_throttling_of_a_container() -> None:
    """A container that runs into its own limit is not hidden by a pod that does not."""
    usage = {"throttledRatio": 0.0, "containers": [{"throttledRatio": None}, {"throttledRatio": 1}]}
    document = {"workloads": [{"namespace": "d", "name": "w", "usage": usage}]}

    assert any("d/w" in line and "100%" in line for line in draw(document))


def test_what_is_not_known_is_no_zero() -> None:
    """Before there is a rate, and on a recording of one moment, CPUs are neither idle nor busy."""
    document = node_document()
    usage = document["usage"]
    assert isinstance(usage, dict)
    text = "\n".join(draw({**document, "usage": {**usage, "cpus": {}}}))

    assert "- of its pool idle" in text
    assert "LS and BE pool - of " in text
    assert "0.00 of" not in text


def test_a_limit_that_is_not_in_force() -> None:
    """A banner says why above everything, and the line of best-effort work what would be."""
    would_be = {"policy": "adaptive", "limitCores": 3.0, "why": "policies.adaptive.mode is shadow"}
    document = {
        "banner": ["Best-effort work is not limited: policies.adaptive.mode is shadow."],
        "bestEffort": {"policy": None, "limitCores": None, "wouldBe": would_be},
    }
    lines = draw(document)

    assert lines[1] == "Best-effort work is not limited: policies.adaptive.mode is shadow."
    assert "BE is not limited; adaptive would allow 3.00 CPUs" in lines
    assert not any("BE may have" in line for line in lines)
    assert any("all of its pool" in line for line in draw(
        {"bestEffort": {"wouldBe": {"policy": "adaptive", "limitCores": None}}}
    ))  # fmt: skip
