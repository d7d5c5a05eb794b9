"""Groups with names that nobody should choose, on this kernel: written, and put back.

Covers: the plan, an agent as a process, kill -9. Does not cover: how such names are shown
(``tests.report.test_names``).
"""

from __future__ import annotations

import errno
import json
import signal
from typing import Any

import pytest

from tests.kit import agents, deadline, images, live, nameless, needs

pytestmark = pytest.mark.e2e

CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
report:
  grpc: {enabled: true}
workloads:
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
#: What a runtime calls a container; nobody declares it.
STRANGER = f"cri-containerd-{'ab' * 32}.scope"


@pytest.fixture
def furnished(place: live.Place) -> live.Place:
    """A workload whose groups have such names, each with a process; strangers in such groups."""
    needs.two_cpus()
    whole = place.read("cpuset.cpus")
    place.group("batch", whole)
    place.group("others", whole)
    for number, name in enumerate(nameless.NAMES):
        place.sleeper(place.group(f"batch/{name}", whole))
        place.group(f"others/{name}", whole)
        place.group(f"others/{name}/{STRANGER.replace('ab', f'{number:02x}', 1)}", whole)
    return place


def test_the_kernel_takes_them(place: live.Place) -> None:
    """All but the newline: that one is refused, so nobody ever has to read it."""
    for name in nameless.NAMES:
        live.HOST.mkdir(live.HOST.at(f"{place.cpuset}/{name}"))
    with pytest.raises(OSError, match="Invalid argument") as refused:
        live.HOST.mkdir(live.HOST.at(f"{place.cpuset}/{nameless.REFUSED}"))

    assert refused.value.errno == errno.EINVAL
    assert set(nameless.NAMES) <= set(live.HOST.list(live.HOST.at(place.cpuset)))


def test_an_agent_among_them(furnished: live.Place) -> None:
    """Each is in the plan, each is cut to the pool, and everything goes back."""
    place = furnished
    before = place.image()
    config = place.state / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(agents.HEADER + CONFIG)
    plan = place.call("plan", "--config", str(config), "-o", "json")
    assert plan.returncode == 0, plan.stderr
    wanted = {write["path"] for write in json.loads(plan.stdout)["writes"]}
    assert {_set(place, name) for name in nameless.NAMES} <= wanted

    with place.running("--config", str(config)) as agent:
        agent.until("READY=1")
        deadline.until(lambda: _ours(place), "every group is in the pool")
        assert agent.ends(signal.SIGTERM) == 0
        assert "Traceback" not in agent.err

    assert images.difference(before, place.image()) == {}


def test_killed_among_them(furnished: live.Place) -> None:
    """The journal of such names brings everything back after kill -9."""
    place = furnished
    before = place.image()
    place.config = CONFIG

    def settle(who: Any) -> None:
        agents.settle(who, agents.Clock())

    assert place.killed(settle, 9, done=True)
    assert place.restore().failed == ()
    assert images.difference(before, place.image()) == {}


def _set(place: live.Place, name: str) -> str:
    return f"{place.cpuset}/batch/{name}/cpuset.cpus"


def _ours(place: live.Place) -> bool:
    whole = place.read("cpuset.cpus")
    return all(whole != place.read(f"batch/{name}/cpuset.cpus") for name in nameless.NAMES)
