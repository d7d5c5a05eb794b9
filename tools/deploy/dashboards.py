"""Grafana's dashboards below ``deploy/dashboards/``, from the rows of ``panels``.

Covers: Grafana's JSON, places on the grid, links between the boards.

    python -m tools.deploy.dashboards            writes them
    python -m tools.deploy.dashboards --check    fails where a file differs
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.deploy import panels

PLACE = Path(__file__).resolve().parents[2] / "deploy/dashboards"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS, _HEIGHT = 24, 8
#: Of Grafana's own shape: a small number needs less room.
_HEIGHTS = {panels.STAT: 4}


def document(board: panels.Board) -> dict[str, Any]:
    """One dashboard as Grafana imports it."""
    return {
        "title": board.title,
        "uid": f"koordlet-{board.name}",
        "tags": ["koordlet"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [
            {
                "type": "dashboards",
                "tags": ["koordlet"],
                "title": "koordlet",
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": [_datasource(), _instances(board)]},
        "panels": list(_panels(board)),
    }


def _datasource() -> dict[str, Any]:
    return {
        "name": "datasource",
        "type": "datasource",
        "query": "prometheus",
        "label": "Data source",
    }


def _instances(board: panels.Board) -> dict[str, Any]:
    return {
        "name": "instance",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({board.listed}, instance)", "refId": "instances"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "label": board.label,
    }


def _panels(board: panels.Board) -> Iterator[dict[str, Any]]:
    x = y = height = 0
    for number, panel in enumerate(board.panels, start=1):
        if x + panel.width > _COLUMNS:
            x, y, height = 0, y + height, 0
        own = _HEIGHTS.get(panel.kind, _HEIGHT)
        place = {"x": x, "y": y, "w": panel.width, "h": own}
        x, height = x + panel.width, max(height, own)
        yield {"id": number, "gridPos": place, **_panel(board, panel)}


def _panel(board: panels.Board, panel: panels.Panel) -> dict[str, Any]:
    table = panel.kind == panels.TABLE
    shown: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": _defaults(board, panel), "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "expr": query,
                "legendFormat": legend,
                **({"format": "table", "instant": True} if table else {}),
            }
            for number, (legend, query) in enumerate(panel.queries)
        ],
    }
    if panel.kind == panels.STAT:
        shown["options"] = {"colorMode": "background", "reduceOptions": {"calcs": ["lastNotNull"]}}
    if table:
        hidden = dict.fromkeys(("Time", "__name__", "job"), True)
        shown["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden}}]
        shown["options"] = {"sortBy": [{"displayName": "Value", "desc": True}]}
    return shown


def _defaults(board: panels.Board, panel: panels.Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red == 0:
        # Nobody leads, nothing is ready: zero is what is wrong.
        steps = [
            {"color": "red", "value": None},
            {"color": "green", "value": 1},
        ]
    else:
        levels = (("orange", panel.orange), ("red", panel.red))
        steps += [{"color": colour, "value": level} for colour, level in levels if level]
    if len(steps) > 1:
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        if panel.kind == panels.LINES:
            defaults["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
    if panel.kind == panels.TIMELINE:
        bad, good = ("true", "false") if panel.title == "Conditions" else ("no", "yes")
        of_one, of_zero = (bad, good) if panel.title == "Conditions" else (good, bad)
        colours = {bad: "red", good: "green"}
        defaults["mappings"] = [
            {
                "type": "value",
                "options": {
                    key: {"text": text, "color": colours[text]}
                    for key, text in (("0", of_zero), ("1", of_one))
                },
            }
        ]
    if board.name == "fleet" and any("instance" in legend for legend, _ in panel.queries):
        url = "/d/koordlet-koordlet?var-instance=${__field.labels.instance}&${__url_time_range}"
        defaults["links"] = [{"title": "The node", "url": url}]
    return defaults


def main(words: list[str]) -> int:
    """Write every board, or compare."""
    different = []
    for board in panels.BOARDS:
        path = PLACE / f"{board.name}.json"
        text = json.dumps(document(board), indent=2, ensure_ascii=False) + "\n"
        if "--check" not in words:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            different.append(path.name)
    if different:
        sys.stderr.write(
            f"{', '.join(different)} is not as generated; fix: python -m tools.deploy.dashboards\n"
        )
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
