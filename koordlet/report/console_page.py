"""The console's page: its files, and how it is sent a state.

Covers: the files of the agent's page and of the scheduler's. Does not cover: how it is drawn
(``page/*.js``), what a state says (``console``, ``scheduler.process.cluster_json``).

Rules:
1. The page gets data only: names of pods and annotations are text for it, never markup, and its
   content security policy lets nothing but its own files run.
2. One state is whole: a page that misses some of them is right again with the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from koordlet.http import message

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}


def _files(page: str, *names: str) -> Mapping[str, tuple[str, str]]:
    """Path to file and its type: a page, and what it loads."""
    paths = {"/": page, **{f"/{name}": name for name in names}}
    return {
        path: (name, f"{_TYPES[name[name.rindex('.') :]]}; charset=utf-8")
        for path, name in paths.items()
    }


_SHARED = ("console.css", "page.css", "page.js", "address.js", "finder.js")
#: Of the agent, a script for each noun.
FILES = _files(
    "console.html",
    *_SHARED,
    "agent.css",
    *("chart.js", "timeline.js", "charts.js", "machine.js", "answers.js", "workloads.js"),
    *("panels.js", "demo.js", "place.js", "console.js"),
)
#: Of the scheduler.
CLUSTER_FILES = _files(
    "cluster.html",
    *_SHARED,
    "cluster.css",
    *("nodes.js", "heatmap.js", "nodetable.js", "nodeview.js", "queue.js", "lanes.js"),
    *("quotas.js", "moves.js", "cluster.js"),
)


def file(path: str, files: Mapping[str, tuple[str, str]] = FILES) -> message.HttpResponse:
    """One file of a page."""
    name, kind = files[path]
    body = (Path(__file__).parent / "page" / name).read_bytes()
    made = message.text(body.decode(), kind=kind)
    made.headers = {**made.headers, "content-security-policy": CSP}
    return made


def event(state: Mapping[str, object] | None) -> bytes:
    """Event with a state; ``None`` if there is none yet."""
    if state is None:
        return b"event: starting\ndata: {}\n\n"
    data = json.dumps(state, separators=(",", ":"))
    return f"event: state\ndata: {data}\n\n".encode()
