"""No file imports, by whatever way, a file that imports it."""

from __future__ import annotations

from tools.checks import cycles


def test_the_tree() -> None:
    """Our packages have no cycle that is not on the list."""
    assert cycles.main() == 0


def test_a_cycle_is_found_through_types_functions_and_packages() -> None:
    """Imports for types, inside functions and of a module from its package count like any other."""
    texts = {
        "p": "",
        "p.a": "import typing\nif typing.TYPE_CHECKING:\n    from p import b\n",
        "p.b": "def f():\n    import p.c\n",
        "p.c": "from p.a import x\n",
        "p.d": "from p import a, d\nimport os\n",
    }

    assert cycles.cycles(texts) == [["p.a", "p.b", "p.c"]]
    assert cycles.cycles({**texts, "p.b": "import p.d"}) == [["p.a", "p.b", "p.d"]]
