"""Where ``koordlet top`` gets its document: an agent, whatever it answers, or this program."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.agent import tick
from koordlet.cli import node_source
from koordlet.model import errors
from tests.cli.test_top import answering
from tests.kit import agents, counting, large_machines, live, machines

GOOD = b'{"version": "v1", "name": "n1"}'


def command_line(**changes: object) -> argparse.Namespace:
    """A command line without options."""
    usual = {"root": None, "config": None, "address": None, "now": None, "pods": None}
    usual |= {"state_dir": None, "cgroup_root": None, "set": None}
    return argparse.Namespace(**{**usual, **changes})


def test_a_good_answer() -> None:
    """The agent's document as it is."""
    with answering(GOOD) as address:
        assert json.loads(GOOD) == node_source.Agent(address).read()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>not me</html>",
        GOOD[:-3],
        b"[]",
        b"null",
        b'{"version": 1}',
        b'{"version": "v9"}',
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"version": "v1", "error": "text"}'[:20],
    ],
)
def test_somebody_else_answers(body: bytes) -> None:
    """No document of ours: one clear error that names the address, whatever came."""
    with answering(body) as address, pytest.raises(errors.HostError) as caught:
        node_source.Agent(address).read()

    assert "no agent answers there: " in str(caught.value)
    assert "Expecting" not in str(caught.value), "not in the words of a parser"
    assert address == caught.value.culprit


def test_an_agent_that_refuses_says_why() -> None:
    """Its own words, also where they are not as they should be."""
    refusal = {"version": "v1", "error": {"message": "no such pod", "fix": "look"}}
    for body, problem in (
        (json.dumps(refusal).encode(), "no such pod"),
        (b'{"version": "v1", "error": 7}', "the agent refused"),
    ):
        with (
            answering(body, 404) as address,
            pytest.raises(errors.UsageError, match=problem),
        ):
            node_source.Agent(address).ask("/api/v1/pods/x")


def test_nobody_answers() -> None:
    """A port that nobody listens on is the same error, and says what to do."""
    with answering(GOOD) as address:
        pass
    with pytest.raises(errors.HostError, match="koordlet run"):
        node_source.Agent(address).read()


@pytest.mark.parametrize("address", ["127.0.0.1:9316/x", "a:b:c"])
def test_what_is_no_address(address: str) -> None:
    """It is named, with the form that it should have."""
    with pytest.raises(errors.UsageError, match="HOST:PORT"):
        node_source.Agent(address).read()


def test_a_recorded_machine_is_never_asked_for(tmp_path: Path) -> None:
    """It is looked at, even where an agent would answer; an address that is given is asked."""
    machines.to_directory(large_machines.full(4), tmp_path)
    source = node_source.choose(command_line(root=str(tmp_path)))

    assert isinstance(source, node_source.Self)
    assert source.read()["version"] == "v1"
    assert isinstance(node_source.choose(command_line(address="127.0.0.1:1")), node_source.Agent)


def test_what_workloads_use_without_an_agent() -> None:
    """Two looks at everything: CPU, throttling, I/O and tasks of each workload, at once."""
    host = counting.machine("v2", "shop", "shop/web")
    host.live = False
    clock = agents.Clock()
    config = agents.effective("workloads: [{name: web, qos: LS, match: {cgroup: shop/web}}]")
    alone = node_source.Self(command_line(), config, tick.Tick(host, config, clock=clock))

    def count(seconds: int) -> None:
        base = "/sys/fs/cgroup/shop/web"
        host.texts[f"{base}/cpu.stat"] = (
            f"usage_usec {seconds}500000\nnr_periods {seconds}0\nnr_throttled {seconds}\n"
        )
        host.texts[f"{base}/io.stat"] = f"8:0 rbytes={seconds}000 wbytes=0\n"
        host.texts[f"{base}/pids.current"] = "3\n"

    count(1)
    alone.settle(1.0)
    count(2)
    clock.tick()
    document: Any = alone.read()
    (web,) = document["workloads"]

    assert 1.0 == web["cpuCores"] == web["usage"]["cpuCores"]
    assert tuple(
        web["usage"][name] for name in ("throttledRatio", "readBytesPerSecond", "pids")
    ) == (0.1, 1000, 3)


def test_who_runs_here_without_an_agent(tmp_path: Path) -> None:
    """Without an agent the kubelet is asked, so that its pods have names and classes."""
    pods = (live.PROJECT / "fixtures" / "kubelet" / "pods.json").read_bytes()
    with answering(pods) as address:
        config = agents.effective(
            f"kubelet: {{mode: on, address: '{address}', readOnlyPort: true,"
            f" statistics: false, directory: '{tmp_path}'}}"
        )
        document: Any = node_source.Self(command_line(), config).read()

    assert "web-1" in {pod["name"] for pod in document["workloads"]}, document["sources"]
