"""The dashboards are as generated, and of a shape that Grafana imports."""

from __future__ import annotations

import itertools
import json

import pytest

from tools.deploy import dashboards, panels

BOARDS = [pytest.param(board, id=board.name) for board in panels.BOARDS]


def test_up_to_date() -> None:
    """The files in the tree are those that the rows make."""
    assert dashboards.main(["--check"]) == 0


@pytest.mark.parametrize("board", BOARDS)
def test_panels_are_side_by_side(board: panels.Board) -> None:
    """On 24 columns, none over another one; each with a number of its own."""
    document = dashboards.document(board)
    places = [panel["gridPos"] for panel in document["panels"]]

    assert len({panel["id"] for panel in document["panels"]}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for first, second in itertools.combinations(places, 2):
        apart = (
            first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"],
            first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"],
        )
        assert any(apart), (first, second)


@pytest.mark.parametrize("board", BOARDS)
def test_every_kind_of_panel_is_used(board: panels.Board) -> None:
    """Numbers first, tables of what is longest, states over time; thresholds rise."""
    document = dashboards.document(board)
    kinds = [panel["type"] for panel in document["panels"]]

    assert set(kinds) == {panels.STAT, panels.TABLE, panels.LINES, panels.TIMELINE}
    assert kinds[0] == panels.STAT
    for panel in document["panels"]:
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        values = [step["value"] for step in steps]
        assert values[:1] in ([], [None])
        assert values[1:] == sorted(values[1:])
        assert all(target["expr"] and target["refId"] for target in panel["targets"])
    assert "$instance" in json.dumps(document["panels"])


def test_a_node_of_the_fleet_leads_to_its_board() -> None:
    """The link's board exists."""
    fleet = json.dumps(dashboards.document(panels.FLEET))
    uids = {dashboards.document(board)["uid"] for board in panels.BOARDS}

    assert "/d/koordlet-koordlet?var-instance=" in fleet
    assert "koordlet-koordlet" in uids
