"""The queueing of links as an action: when it is so, and what is put back.

The kernel's part is in ``tests/e2e/test_network_qos``.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from koordlet.apply import kinds, network, present, undoing
from koordlet.host.recording import directory
from koordlet.model import action, queueing
from koordlet.state import journal
from tests.kit import moments

TREE = queueing.text(queueing.Tree(2, {2: queueing.Class(0, 80, 80)}))
SHAPED = action.SetQdisc(target="/net/eth0/egress", value=TREE, policy="p", reason="r")
ENTRY = journal.Entry(
    kind="SetQdisc", target=SHAPED.target, policy="p", original="mq 0:", values=(TREE,)
)


def test_it_is_so_when_the_side_says_so() -> None:
    """Its text is the whole tree: another class, rate or address is a difference."""
    assert kinds.satisfied(SHAPED, TREE)
    assert not kinds.satisfied(SHAPED, TREE.replace("80", "88"))
    assert not kinds.satisfied(SHAPED, None)
    assert kinds.journaled(SHAPED)
    assert kinds.may_block(SHAPED)


@pytest.mark.parametrize(
    ("current", "back", "reported"),
    [
        (TREE, True, False),
        (TREE.replace("80", "88"), True, False),
        (queueing.UNFINISHED, True, False),
        ("fq_codel 0:", False, False),
        ("tbf 7:", False, True),
        (None, False, False),
    ],
)
def test_putting_back_is_three_way(current: str | None, back: bool, reported: bool) -> None:
    """Ours goes, also half of it; what is free is done; somebody else's stays and is told."""
    texts = {} if current is None else {SHAPED.target: current}
    now = moments.moment(moments.machine())
    made = undoing.undo(now, present.Present(texts=texts), [ENTRY], [])

    assert ["mq 0:"] * back == [kinds.value(each) for each in made.actions]
    assert [reported] * (not back) == [each.tell for each in made.left]


def test_ours_before_us_goes_all_the_same() -> None:
    """An agent whose journal was lost left it: what is put back is the kernel's own."""
    now = moments.moment(moments.machine())
    there = present.Present(texts={SHAPED.target: TREE})
    made = undoing.undo(now, there, [ENTRY._replace(original=TREE)], [])

    assert [kinds.value(each) for each in made.actions] == [queueing.NONE]


def test_a_helper_without_the_network_forgets_nothing() -> None:
    """A link that is not to be seen from another network namespace is not gone."""
    now = moments.moment(moments.machine())
    there = present.Present(inodes={SHAPED.target: 8})
    made = undoing.undo(now, there, [ENTRY._replace(inode=7)], [])

    assert [(each.forget, each.tell) for each in made.left] == [(False, True)]
    assert made.actions == []


def test_a_recording_has_no_network(tmp_path: Path) -> None:
    """Nothing of the machine that reads it is changed."""
    with pytest.raises(OSError, match="network is not available") as refused:
        network.carry_out(directory.DirHost(str(tmp_path)), SHAPED)
    assert refused.value.errno == errno.EOPNOTSUPP
