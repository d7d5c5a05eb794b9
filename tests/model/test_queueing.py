"""Trees of classes as texts: there and back, and whose a text is."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import queueing

minors = st.integers(1, 0xFFFF)
rates = st.integers(0, 1 << 40).map(lambda number: 8 * number)
trees = st.builds(
    queueing.Tree,
    minors,
    st.dictionaries(
        minors,
        st.builds(queueing.Class, st.integers(0, 0xFFFF), rates, rates, st.integers(0, 7)),
        max_size=4,
    ),
    st.dictionaries(st.ip_addresses().map(str), minors, max_size=4),
)


@hypothesis.given(trees)
def test_there_and_back(tree: queueing.Tree) -> None:
    """The text of a tree is that tree, and the text of what was parsed is the text."""
    text = queueing.text(tree)

    assert tree == queueing.parse(text)
    assert text == queueing.text(queueing.parse(text))
    assert queueing.is_ours(text)
    assert not queueing.is_free(text)


def test_order_does_not_matter() -> None:
    """Addresses and classes have one order, whoever names them first."""
    tree = queueing.Tree(2, {}, {"10.0.0.10": 3, "10.0.0.9": 3, "fd00::1": 3})
    other = queueing.Tree(2, {}, dict(reversed(list(tree.addresses.items()))))

    assert queueing.text(tree) == queueing.text(other)
    assert "in 3: 10.0.0.9 10.0.0.10 fd00::1" in queueing.text(tree)


@pytest.mark.parametrize("text", ["", "tbf 7:", "htb 1:", "htb 4b4c: default 2\nwhatever 3"])
def test_what_is_no_tree_is_refused(text: str) -> None:
    """With the line that is none."""
    with pytest.raises(ValueError, match="not a"):
        queueing.parse(text)


@pytest.mark.parametrize(
    ("text", "free", "ours"),
    [
        ("noqueue 0:", True, False),
        ("fq_codel 0:", True, False),
        ("mq 0:", True, False),
        ("none", True, False),
        ("fq_codel 8001:", False, False),
        ("htb 1:", False, False),
        ("clsact ffff:", False, False),
        ("unfinished", False, True),
        ("htb 4b4c: default 2", False, True),
    ],
)
def test_whose_it_is(text: str, free: bool, ours: bool) -> None:
    """Handle 0 is the kernel's own, our handle is ours, everything else is somebody's."""
    assert (free, ours) == (queueing.is_free(text), queueing.is_ours(text))


@pytest.mark.parametrize("link", ["eth0", "enp1s0f0.100", "bond-0"])
def test_targets(link: str) -> None:
    """They name link and direction; no file has such a name."""
    target = queueing.target(link, queueing.INGRESS)

    assert (link, "ingress") == queueing.of_target(target)
    assert queueing.of_target(target + "/x") is None
    assert queueing.of_target("/sys/class/net/eth0/mtu") is None
