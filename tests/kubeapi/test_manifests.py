"""Objects from files, as kubectl prints them: Lists unfolded, nonsense named by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.kubeapi import manifests
from koordlet.model import errors


def test_a_list_is_unfolded_and_lends_its_kind(tmp_path: Path) -> None:
    """Items that say no kind are what their list lists; a document beside it stands for itself."""
    file = tmp_path / "a.yaml"
    file.write_text(
        "kind: PodList\nitems: [{metadata: {name: a}}, {kind: Node}]\n---\nkind: Service\n"
    )

    assert [body["kind"] for body in manifests.load(str(file))] == ["Pod", "Node", "Service"]


def test_an_item_that_is_no_object_costs_itself_where_that_is_said(tmp_path: Path) -> None:
    """Without a place to say it, the whole file is refused, with the place of the item."""
    file = tmp_path / "a.json"
    file.write_text('{"kind": "PodList", "items": [5, {"kind": "Pod"}]}')
    left_out: list[str] = []

    assert manifests.load(str(file), left_out) == [{"kind": "Pod"}]
    assert left_out == [f"{file}: document 1: items[0]: not an object; it is ignored"]
    with pytest.raises(errors.ConfigError, match="found int"):
        manifests.load(str(file))


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Which of the two counts nobody can know."""
    file = tmp_path / "a.yaml"
    file.write_text("kind: Pod\nkind: Node\n")

    with pytest.raises(errors.ConfigError, match="kind"):
        manifests.load(str(file))
