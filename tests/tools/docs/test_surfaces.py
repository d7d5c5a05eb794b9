"""What a version promised is still there: names of every surface, and a whole configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.config import loader, sections
from tools.docs import surfaces

RECORDS = sorted((Path(__file__).parents[3] / "fixtures/surfaces").glob("*.txt"))
CONFIGS = sorted((Path(__file__).parents[3] / "fixtures/surfaces").glob("*.yaml"))
#: Names that went, each with the deprecation that came before; empty before 1.0.0.
GONE: dict[str, str] = {}


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: str(path.stem))
def test_no_name_of_a_version_is_gone(record: Path) -> None:
    """Names are added and never taken; before a release its record is made anew.

    python -m tools.docs.surfaces > fixtures/surfaces/VERSION.txt
    """
    promised = record.read_text().splitlines()

    assert len(promised) > 1000
    assert sorted(set(promised) - set(surfaces.names()) - GONE.keys()) == []


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: str(path.stem))
def test_the_whole_configuration_of_a_version_is_valid(config: Path) -> None:
    """Every key that it had, with the value that it had; a warning names each that went since."""
    loaded = loader.from_text(config.read_text(), str(config), {}, {})

    assert [w for w in loaded.warnings if f" {sections.DEPRECATED}: " not in w] == []
    assert len(config.read_text().splitlines()) > 200
