"""The demo on this host: two real processes get their CPUs, and everything goes away again."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.kit import answers, deadline, images, live

pytestmark = pytest.mark.e2e


def allowed(place: live.Place, name: str) -> str:
    """The CPUs that the demo's process may really use; empty while it has none."""
    pids = place.read(f"koordlet-demo/{name}/cgroup.procs").split()
    if not pids:
        return ""
    status = Path(f"/proc/{pids[0]}/status").read_text()
    line = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    return "" if line is None else line[1]


def test_the_demo_enforces_and_puts_everything_back(place: live.Place) -> None:
    """Both processes run on their pools; Ctrl-C ends with 0 and the machine is as before."""
    before = place.image()
    with place.running("--demo") as demo:
        demo.until("READY=1")
        demo.until("all surfaces up")
        for name in ("ls", "be"):
            pool = place.read(f"koordlet-demo/{name}/cpuset.cpus")
            assert pool == deadline.until(functools.partial(allowed, place, name), name)
        assert "Ctrl-C stops the demo" in deadline.until(lambda: demo.out, "greeting")
        assert demo.ends(signal.SIGINT) == 0
        assert demo.out.endswith("The demo is over: all changes are undone.\n")

    assert images.difference(before, place.image()) == {}


def test_the_greeting_names_addresses_that_answer(place: live.Place) -> None:
    """What the demo prints can be opened: health is good, the plan is empty once all is done."""
    with place.running("--demo") as demo:
        demo.until("all surfaces up")
        shown = deadline.until(lambda: re.search(r"http://(\S+)/", demo.out), "an address")
        assert answers.get(shown[1], "/healthz")[0] == 200
        status, body = answers.get(shown[1], "/api/v1/plan")
        assert (status, json.loads(body)["version"]) == (200, "v1")
        assert demo.ends(signal.SIGTERM) == 0


def test_best_effort_work_yields_in_every_second_phase(place: live.Place) -> None:
    """Without koordlet it runs like any other; with it on idle CPU only; Ctrl-C sums that up."""
    with place.running("--demo") as demo:
        demo.until("all surfaces up")
        group = next(top for top in place.tops if live.HOST.exists(live.HOST.at(f"{top}/cpu.idle")))

        def idles(value: str) -> bool:
            path = live.HOST.at(f"{group}/koordlet-demo/be/cpu.idle")
            return live.HOST.text(path).strip() == value

        for value in ("0", "1", "0", "1"):
            deadline.until(functools.partial(idles, value), f"cpu.idle {value}")
        hogs = place.read("koordlet-demo/be/cgroup.procs").split()
        assert len(hogs) == len(os.sched_getaffinity(0))
        rows = functools.partial(re.findall, r"^\d\d:\d\d:\d\d  (off|on) ", flags=re.MULTILINE)
        deadline.until(lambda: len(rows(demo.out)) == 4, "four phases")
        assert rows(demo.out) == ["off", "on", "off", "on"]
        assert demo.ends(signal.SIGINT) == 0
    assert "2 times 6 s without and with koordlet" in demo.out
    assert "koordlet-demo/be/cpu.idle: 0 -> 1, adaptive: best-effort work runs on idle" in demo.out


def test_a_killed_demo_is_restored_by_the_command(place: live.Place) -> None:
    """After kill -9 the command puts everything back; called again it does nothing."""
    before = place.image()
    with place.running("--demo") as demo:
        demo.until("READY=1")
        demo.ends(signal.SIGKILL)
    first, second = place.call("restore", "-o", "json"), place.call("restore", "-o", "json")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert json.loads(first.stdout)["restored"] > 5
    assert json.loads(second.stdout) == {"version": "v1", "restored": 0, "left": [], "failed": []}
    assert images.difference(before, place.image()) == {}


def test_stopped_in_the_middle_of_its_start(place: live.Place) -> None:
    """SIGTERM before it is ready ends the start cleanly: nothing is left behind."""
    before = place.image()
    with place.running("--demo") as demo:
        group = live.HOST.at(f"{place.cpuset}/koordlet-demo")
        deadline.until(lambda: live.HOST.exists(group), "the first change")
        status = demo.ends(signal.SIGTERM)

    assert status == 0
    assert images.difference(before, place.image()) == {}
