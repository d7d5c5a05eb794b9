"""What is put back for one journal entry. Whole machines: test_three_way."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.apply import present, undoing
from koordlet.model import action
from koordlet.state import journal
from tests.kit import agents, moments
from tests.kit.kernel import Machine

TARGET = "/c/g/cpu.shares"
NOW = moments.bare()
ENTRY = journal.Entry(
    kind="WriteFile",
    target=TARGET,
    policy="p",
    original="1024",
    values=("2",),
    knob="cpu.shares",
    group="g",
    inode=5,
    sure=True,
)


def undone(entry: journal.Entry, text: str | None, inode: int = 5) -> undoing.Undoing:
    """What is done about an entry where the file holds a text."""
    texts = {} if text is None else {TARGET: text}
    there = present.Present(texts=texts, inodes={} if text is None else {TARGET: inode})
    return undoing.undo(NOW, there, [entry], ())


def test_our_value_goes_back_to_the_original() -> None:
    """A file that still holds what we wrote."""
    actions = undone(ENTRY, "2").actions

    assert [
        (write.value, write.target) for write in actions if isinstance(write, action.WriteFile)
    ] == [("1024", TARGET)]


@pytest.mark.parametrize(
    ("entry", "text", "inode"),
    [
        pytest.param(ENTRY, "7", 5, id="somebody else's value"),
        pytest.param(ENTRY, "2", 6, id="another group of that name"),
        pytest.param(ENTRY, None, 5, id="the group is gone"),
        pytest.param(ENTRY._replace(original=None), "2", 5, id="nobody could read it before us"),
    ],
)
def test_everything_else_is_left(entry: journal.Entry, text: str | None, inode: int) -> None:
    """Nothing is written, and why is known."""
    made = undone(entry, text, inode)

    assert made.actions == []
    assert [left.target for left in made.left if left.why] == [TARGET]


def test_files_go_with_the_group_that_we_made() -> None:
    """A group of ours is removed; nobody writes into it first."""
    directory = journal.Entry(
        kind="MakeDir", target="/c/g", policy="p", original=None, values=("MakeDir",), group="g"
    )
    there = present.Present(
        texts={TARGET: "2", "/c/g": "present"}, inodes={TARGET: 5, "/c/g": 5}, procs={"/c/g": ()}
    )
    made = undoing.undo(NOW, there, [ENTRY, directory], ())

    assert [removal.target for removal in made.actions] == ["/c/g"]
    assert [left.why for left in made.left] == ["removed with its cgroup"]


def test_a_v1_group_without_memory_nodes_keeps_those_that_it_was_given(ram: Path) -> None:
    """They are not taken back while its CPUs are ours, and go with them at the end."""
    host = Machine("0-3", cgroup="v1")
    place = "/sys/fs/cgroup/cpuset/job"
    host.mkdir(host.at(place))
    config = "workloads: [{name: job, qos: BE, match: {cgroup: job}}]\n"
    site = agents.Site(host, ram / "state", config=config)
    with site.agent() as who:
        for _ in range(4):
            who.one_pass(slow=True)
            site.clock.tick()
            assert host.text(host.at(f"{place}/cpuset.mems")).strip() == "0"
    site.restore()

    assert host.text(host.at(f"{place}/cpuset.mems")).strip() == ""
    assert host.text(host.at(f"{place}/cpuset.cpus")).strip() == ""
