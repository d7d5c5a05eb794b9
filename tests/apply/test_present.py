"""What a plan finds: only what it is about, and what is not there is not in it."""

from __future__ import annotations

import dataclasses

from koordlet.apply import kinds, present
from koordlet.host.cgroup import hierarchies
from koordlet.model import action, cgroup, snapshot
from koordlet.state import journal
from tests.kit import moments
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup"


def made() -> tuple[KernelHost, snapshot.Snapshot]:
    """A machine with one group."""
    host = Machine("0-3", cgroup="v2")
    host.mkdir(host.at(f"{TOP}/g"))
    host.write(host.at(f"{TOP}/g/cpuset.cpus"), b"1-2")
    now = moments.bare(hierarchies.discover(host))
    return host, now


def write(group: str) -> action.WriteFile:
    """A wish about the set of a group."""
    return action.WriteFile(
        target=f"{TOP}/{group}/cpuset.cpus",
        value="3",
        policy="p",
        reason="r",
        knob="cpuset.cpus",
        group=group,
    )


def test_files_of_wishes_and_of_the_journal_are_read() -> None:
    """Text and identity of each; a file whose group is gone is not in the mapping."""
    host, now = made()
    entry = journal.Entry(
        kind="WriteFile",
        target=f"{TOP}/g/cpuset.mems",
        policy="p",
        original="0",
        values=("",),
    )
    state = present.read(host, now, [write("g"), write("gone")], [entry])

    assert {f"{TOP}/g/cpuset.cpus": "1-2", f"{TOP}/g/cpuset.mems": ""} == state.texts
    assert {host.stat(host.at(f"{TOP}/g")).inode} == set(state.inodes.values())


def test_what_the_snapshot_holds_is_not_read_again() -> None:
    """The group's values as they were seen are the present ones."""
    host, now = made()
    seen = cgroup.Group(path="g", inode=7, values={"cpuset.cpus": "0"})
    state = present.read(host, dataclasses.replace(now, groups={"g": seen}), [write("g")], ())

    assert (
        state.texts[f"{TOP}/g/cpuset.cpus"],
        state.inodes[f"{TOP}/g/cpuset.cpus"],
    ) == ("0", 7)


def test_what_somebody_has_open_is_not_opened_again() -> None:
    """Its text comes from there, its identity from its group; without an answer it is opened."""
    host, now = made()
    target = f"{TOP}/g/cpuset.cpus"
    inode = host.inode(host.at(f"{TOP}/g"))
    for text, wanted in ((b"0\n", "0"), (None, "1-2")):
        kept = {target: text}
        state = present.read(host, now, [write("g"), write("gone")], (), kept=kept.get)

        assert (state.texts, state.inodes) == ({target: wanted}, {target: inode})


def test_a_directory_is_there_or_not() -> None:
    """One that is to be made is in the mapping only where it exists."""
    host, now = made()
    wishes = [
        action.MakeDir(target=f"{TOP}/{group}", policy="p", reason="r", group=group)
        for group in ("g", "gone")
    ]

    assert {f"{TOP}/g": kinds.PRESENT} == present.read(host, now, wishes, ()).texts


def test_systemd_must_have_been_told() -> None:
    """A unit's file that says so already is untold until the journal says that it was our doing."""
    host, now = made()
    wish = action.SetUnitProperty(
        target=f"{TOP}/g/cpuset.cpus",
        value="1-2",
        unit="g",
        properties=(("AllowedCPUs", "1-2"),),
        policy="p",
        reason="r",
        knob="cpuset.cpus",
        group="g",
    )
    entry = journal.Entry(
        kind="SetUnitProperty",
        target=wish.target,
        policy="p",
        original="",
        values=("1-2",),
        inode=host.stat(host.at(f"{TOP}/g")).inode,
    )

    assert {wish.target} == present.read(host, now, [wish], ()).untold
    assert frozenset() == present.read(host, now, [wish], [entry]).untold
