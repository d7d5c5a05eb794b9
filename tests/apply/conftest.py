"""What several tests of this room share: a machine with four groups, an agent's state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.four import TREE
from tests.kit import agents, trees
from tests.kit.kernel import KernelHost


@pytest.fixture
def host() -> KernelHost:
    """A machine with four groups."""
    return trees.build(TREE)[0]


@pytest.fixture
def site(host: KernelHost, ram: Path) -> agents.Site:
    """That machine with an agent's state."""
    return trees.site(TREE, host, ram)
