"""Containers of Docker on cgroup v2, with both drivers, under a running systemd.

Covers: names, declared by their own group or unit and by the one above, ``docker update``, the end,
an agent that is killed and undone. Does not cover: cgroup v1 (``tests.e2e.test_docker``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.vm import fetched
from tests.vm.fixtures import Boot

pytestmark = [pytest.mark.vm, pytest.mark.soak]

EVERY, OURS = "0-7", "1-7"


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_containers_of_docker(boot: Boot, driver: str) -> None:
    """They are known by name; our sets come on those that are declared, stay and go."""
    guest = boot("2s8t", systemd=True, shares=fetched.shares("containerd", "docker"))
    done = guest.run(
        ["python3", "-m", "tests.vm.probes.dockers", driver], env=fetched.environment(), timeout=500
    ).check()
    facts: dict[str, Any] = json.loads(done.stdout)

    plain, batch, alone = facts["boxes"]
    if driver == "systemd":
        places = [f"system.slice/docker-{plain}.scope", f"batch.slice/docker-{batch}.scope"]
        places.append(f"system.slice/docker-{alone}.scope")
    else:
        places = [f"docker/{plain}", f"batch/{batch}", f"docker/{alone}"]
    runtime = "docker" if driver == "systemd" else ""
    known = {box: [place, runtime] for box, place in zip(facts["boxes"], places, strict=True)}
    assert places == facts["groups"]
    assert known == facts["understood"]["containers"]
    assert ([], sorted(places)) == (facts["understood"]["pods"], facts["understood"]["strangers"])
    assert facts["before"] == [EVERY] * 3
    assert [OURS, OURS, EVERY] == facts["ours"] == facts["updated"], facts["log"]
    assert facts.get("reloaded", facts["ours"]) == facts["ours"], facts["log"]
    assert (facts["restore"], facts["restored"]) == (0, [EVERY] * 3), facts["log"]
    assert (facts["status"], facts["after"]) == (0, [EVERY] * 3), facts["log"]
