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
    said: dict[str, Any] = json.loads(done.stdout)

    one, batch, alone = said["boxes"]
    if driver == "systemd":
        places = [f"system.slice/docker-{one}.scope", f"batch.slice/docker-{batch}.scope"]
        places.append(f"system.slice/docker-{alone}.scope")
    else:
        places = [f"docker/{one}", f"batch/{batch}", f"docker/{alone}"]
    runtime = "docker" if driver == "systemd" else ""
    known = {box: [place, runtime] for box, place in zip(said["boxes"], places, strict=True)}
    assert places == said["groups"]
    assert known == said["understood"]["containers"]
    assert ([], sorted(places)) == (said["understood"]["pods"], said["understood"]["strangers"])
    assert said["before"] == [EVERY] * 3
    assert [OURS, OURS, EVERY] == said["ours"] == said["updated"], said["log"]
    assert said.get("reloaded", said["ours"]) == said["ours"], said["log"]
    assert (said["restore"], said["restored"]) == (0, [EVERY] * 3), said["log"]
    assert (said["status"], said["after"]) == (0, [EVERY] * 3), said["log"]
