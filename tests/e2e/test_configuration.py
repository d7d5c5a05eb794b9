"""On the real kernel: an agent that starts with a configuration file which cannot be used."""

from __future__ import annotations

import re
import signal

import pytest

from koordlet.state import last_config
from tests.kit import agents, answers, deadline, images, live, live_workloads

pytestmark = pytest.mark.e2e

BROKEN = agents.HEADER + "polices: {}\n"


def address(agent: live.Running) -> str:
    """Where it answers, once it says so."""

    def newest() -> str:
        addresses = re.findall(r"http://(127\.0\.0\.1:\d+)/", agent.err)
        return addresses[-1] if addresses else ""

    return deadline.until(newest, "an address")


def test_a_typing_error_costs_itself(place: live.Place) -> None:
    """Killed, the file broken, started again: the limits never go, and everybody is told why."""
    before = live_workloads.furnish(place)
    path = live_workloads.config(place)
    with place.running("--config", str(path)) as agent:
        agent.until("READY=1")
        deadline.until(place.paths.last_config.exists, "the last good one on disk")
        limited = place.image()
        agent.ends(signal.SIGKILL)
    path.write_text(BROKEN)
    assert images.difference(limited, place.image()) == {}

    with place.running("--config", str(path)) as agent:
        agent.until("READY=1")
        assert images.difference(limited, place.image()) == {}
        asked = address(agent)
        assert 200 == answers.get(asked, "/livez")[0] == answers.get(asked, "/readyz")[0]
        status, checks = answers.get(asked, "/healthz?verbose")
        assert (status, f"{path}:3" in checks.decode()) == (503, True)
        assert "in force: the last good configuration" in checks.decode()
        assert "ConfigurationRefused" in answers.text(asked, "/api/v1/plan")
        path.write_text(agents.HEADER + place.config)
        deadline.until(lambda: answers.get(asked, "/healthz")[0] == 200, "the file is mended")
        assert agent.ends(signal.SIGTERM) == 0

    assert images.difference(before, place.image()) == {}


def test_without_any_good_one(place: live.Place) -> None:
    """It observes, is alive and not ready; once the file is mended the same process is, limited."""
    before = live_workloads.furnish(place)
    path = live_workloads.config(place)
    assert place.forked(live_workloads.settle) == 0
    limited = place.image()
    path.write_text(BROKEN)

    with place.running("--config", str(path)) as agent:
        asked = address(agent)
        assert answers.get(asked, "/livez")[0] == 200
        status, checks = answers.get(asked, "/readyz?verbose")
        assert (status, "no valid configuration" in checks.decode()) == (503, True)
        assert images.difference(limited, place.image()) == {}, "nobody has refused them yet"
        path.write_text(agents.HEADER + place.config)
        # The HTTP server comes back, at another port of the kernel's choice.
        deadline.until(lambda: address(agent) != asked, "it begins anew")
        deadline.until(lambda: answers.get(address(agent), "/readyz")[0] == 200, "it is ready")
        assert images.difference(limited, place.image()) == {}
        assert agents.HEADER + place.config == last_config.load(place.paths.last_config)
        assert agent.ends(signal.SIGTERM) == 0

    assert images.difference(before, place.image()) == {}
