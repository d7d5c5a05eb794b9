"""The table of Koordinator's names against the code: what it calls the same is there."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest
import yaml

from koordlet.cli import koordinator_features
from koordlet.config import catalog
from koordlet.kubeapi import kinds
from koordlet.report import metrics
from koordlet.workloads import sloconfig
from tools.docs import koordinator, koordinator_chart, surfaces

REPO = Path(__file__).parents[3]
PATHS = {field.path for field in catalog.fields()}
FAMILIES = {family.name.removesuffix("_total") for family in metrics.table()}
SOURCES = "\n".join(
    path.read_text()
    for path in sorted((REPO / "koordlet").rglob("*.py"))
    if path.name != "koordinator_features.py"
)
EVERY = [(f.sort, name, f) for f in koordinator.FEATURES for name in f.names]


def test_the_page_is_up_to_date() -> None:
    """What lies in docs/ is what the table makes."""
    assert (REPO / "docs/koordinator.md").read_text() == koordinator.page()


def test_each_name_has_one_answer() -> None:
    """No name stands twice in a sort, and each sort has its title."""
    counts = collections.Counter((sort, name) for sort, name, _ in EVERY)
    assert [each for each, count in counts.items() if count > 1] == []
    assert {sort for sort, *_ in EVERY} == koordinator._TITLES.keys()
    assert len(EVERY) > 150


@pytest.mark.parametrize("feature", [f for f in koordinator_features.FEATURES if f.ours], ids=str)
def test_what_is_ours_exists(feature: koordinator_features.PeerFeature) -> None:
    """A key of the configuration, a section of it, or a metric."""
    below = any(path.startswith(f"{feature.ours}.") for path in PATHS)
    assert feature.ours in PATHS or below or feature.ours in FAMILIES


def test_each_value_of_its_chart_has_one_answer() -> None:
    """By its own name or one above it; no name is invented, and what is ours is in our chart."""
    listed = (REPO / "fixtures/koordinator/chart-values.txt").read_text().splitlines()[1:]
    ours = yaml.safe_load((REPO / "deploy/chart/values.yaml").read_text())
    names = [name for feature in koordinator_chart.FEATURES for name in feature.names]

    covering = {path: [n for n in names if f"{path}.".startswith(f"{n}.")] for path in listed}
    assert {path: owners for path, owners in covering.items() if len(owners) != 1} == {}
    assert {name for owners in covering.values() for name in owners} == set(names)
    for feature in koordinator_chart.FEATURES:
        value = ours
        for key in filter(None, feature.ours.split(".")):
            value = value[key]


def test_the_same_keys_are_read_and_absent_ones_are_not() -> None:
    """A key of pods and nodes is the same where some module names it."""
    for sort, name, feature in EVERY:
        if sort in {"pod key", "node key"}:
            named = re.search(rf'\b{name.rpartition("/")[2]}["`]', SOURCES) is not None
            assert named is (feature.state != "absent"), name


def test_the_same_metrics_are_served_and_absent_ones_are_not() -> None:
    """Under Koordinator's name, with its prefix."""
    for sort, name, feature in EVERY:
        if sort == "metric":
            assert (f"koordlet_{name}" in FAMILIES) is (feature.state == "same"), name


def test_keys_of_the_map_kinds_and_paths() -> None:
    """Those that a table of the code lists."""
    known = {name for sort, name, f in EVERY if sort == "ConfigMap key" and f.state == "same"}
    assert known == set(sloconfig._SECTIONS)
    served = set(surfaces.http_paths())
    every = {kind.name for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)}
    for sort, name, feature in EVERY:
        if sort == "kind":
            assert (name in every) is (feature.state != "absent"), name
        if sort == "HTTP path":
            assert (name in served) is (feature.state == "same"), name
