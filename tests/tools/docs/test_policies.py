"""What the page of the policies says beside the code: of every policy, of files that there are."""

from __future__ import annotations

import importlib
import re

import pytest

from koordlet.config import catalog
from koordlet.model import knob
from koordlet.policy.framework import declaration, registry
from tools.docs import policies

#: Every cgroup file that a row of the table names.
FILES = {file for row in knob.TABLE.values() for file in (row.v1, row.v2) if file is not None}
_NAMED = re.compile(r"`((?:cpu|cpuset|memory|io|blkio|cgroup)\.[\w.*]+)`")


def test_no_policy_is_left_out() -> None:
    """Formula, what it writes, how to see it and what off means, for each."""
    page = policies.page()
    for row in registry.POLICIES:
        section = page.partition(f"\n## {row.stem}\n")[2].partition("\n## ")[0]
        for part in ("Protects", "Formula", "Writes", "See it", "Off"):
            assert f"**{part}:** " in section, (row.stem, part)
        for field in catalog.fields():
            below = field.path.removeprefix(f"policies.{row.stem}.")
            assert below == field.path or f"| `{below}` |" in section, field.path


@pytest.mark.parametrize("policy", registry.POLICIES, ids=lambda policy: policy.stem)
def test_files_are_those_of_the_table(policy: declaration.Declared) -> None:
    """A file that is said to be written has a row; a star stands for several."""
    header = importlib.import_module(policy.decide.__module__).__doc__ or ""
    words = policies.words_of(header.strip().rpartition("\n\n")[2].replace("``", "`"))
    for name in _NAMED.findall(words["Writes"]):
        pattern = re.compile(re.escape(name).replace(r"\*", ".*"))
        assert any(pattern.fullmatch(file) for file in FILES), name
    assert "`" not in words["Formula"]
