"""What gangs use of the core."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_type_hints

from koordlet.scheduler import gangs
from koordlet.scheduler.framework import profile
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.loop.core import Core

#: The members of the protocol, attributes and methods.
MEMBERS = {
    *get_type_hints(GangCore),
    *(name for name in vars(GangCore) if not name.startswith("_")),
}


def used() -> set[str]:
    """The attributes that modules of gangs read of ``core``."""
    (folder,) = gangs.__path__
    return {
        node.attr
        for path in Path(folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value).rpartition(".")[2] in {"core", "_core"}
    }


def test_the_protocol_names_what_gangs_use_of_the_core_and_nothing_else() -> None:
    """An import of the core would be a cycle; a part that nobody uses would couple for nothing."""
    assert used() == MEMBERS


def test_the_core_has_every_part_that_the_protocol_names() -> None:
    """Under its name, when gangs are first tried."""
    core = Core({"default-scheduler": profile.default("default-scheduler")})

    assert {name for name in MEMBERS if not hasattr(core, name)} == set()
