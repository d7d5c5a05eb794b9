"""Which assignments are found, and which files may still have them."""

from __future__ import annotations

import pytest

from tools import wiring


@pytest.mark.parametrize(
    ("text", "assignments"),
    [
        ("def f(a):\n    a.b = 1", [(2, "a.b")]),
        ("def f(a):\n    a.b, c = 1, 2", [(2, "a.b")]),
        ("def f(a):\n    a.b += 1", [(2, "a.b")]),
        ("def f(a):\n    a.b: int = 1", [(2, "a.b")]),
        ("def f(a):\n    for a.b in a: pass", [(2, "a.b")]),
        ("def f(a):\n    with a as a.b: pass", [(2, "a.b")]),
        ("def f(a):\n    del a.b", [(2, "a.b")]),
        ("class C:\n    def f(self):\n        self.a.b = 1", [(3, "self.a.b")]),
        ("class C:\n    def f(self):\n        self.a = 1", []),
        ("def f():\n    a = m.Made()\n    a.b = 1", []),
        ("def f():\n    a = m.Made()\n    def g():\n        a.b = 1", []),
        ("def f():\n    a = made()\n    a.b = 1", [(3, "a.b")]),
        ("def g():\n    a = Made()\ndef f(a):\n    a.b = 1", [(4, "a.b")]),
        ("def f(a):\n    a[0] = 1", []),
    ],
)
def test_what_counts(text: str, assignments: list[tuple[int, str]]) -> None:
    """Every form of assignment, except on ``self`` and on an object made in the same function."""
    assert list(wiring.assignments(text)) == assignments


def test_the_list_only_shrinks() -> None:
    """A file off the list may not assign; a file on the list that does not leaves it."""
    files = [("new.py", "def f(a): a.b = 1"), ("old.py", "def f(a): a.b = 1"), ("clean.py", "")]

    assert wiring.problems(files, ["old.py", "clean.py"]) == [
        "new.py:1: a.b is assigned from outside",
        "clean.py: take it off wiring_allowed.txt",
    ]


def test_the_agent_is_clean() -> None:
    """No module of the agent is on the list."""
    assert "koordlet/agent/" not in wiring.ALLOWED.read_text(encoding="utf-8")
