"""Two workloads on the real kernel, and the configuration that declares them.

Covers: their groups and processes, passes until nothing changes. Does not cover: the program.
"""

from __future__ import annotations

from pathlib import Path

from koordlet.agent import lifecycle
from tests.kit import agents, images, live, needs

WORKLOADS = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""


def furnish(place: live.Place) -> images.Image:
    """Two workloads with processes, one with groups of its own; the image before anything."""
    needs.two_cpus()
    place.config = WORKLOADS
    for path in ("web", "web/one", "web/one/inner", "batch"):
        place.group(path)
    for path in ("web/one/inner", "batch"):
        place.sleeper(f"{place.cpuset}/{path}")
    return place.image()


def settle(who: lifecycle.Agent) -> None:
    """Pass until nothing changes."""
    agents.settle(who, agents.Clock())


def config(place: live.Place) -> Path:
    """The configuration as a file."""
    path = place.state / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(agents.HEADER + place.config)
    return path
