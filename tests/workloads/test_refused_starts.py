"""Starts that the kernel refused, as the kubelet writes them down."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import podwire
from koordlet.workloads import refused_starts

RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc"
    " create failed: unable to start container process: unable to apply cgroup configuration:"
    ' failed to write "0-1": write /sys/fs/cgroup/cpuset/kubepods/besteffort/'
    f"pod42195b26-2970-4d02-a8ec-f4b17c1850b5/{'a1' * 32}/cpuset.cpus: permission denied"
)


def refusal(state: dict[str, Any], last: dict[str, Any] | None = None) -> str:
    """What is made of a status."""
    return refused_starts.of(podwire.ContainerStatus(name="c", state=state, last_state=last))


@pytest.mark.parametrize("reason", ["RunContainerError", "CreateContainerError"])
def test_while_it_waits_for_the_next_attempt(reason: str) -> None:
    """The reason is there, without the number of the attempt."""
    message = refusal({"waiting": {"reason": reason, "message": RUNC}})

    assert message.startswith("failed to create shim task: ")
    assert message.endswith("/…/cpuset.cpus: permission denied")


def test_during_a_back_off() -> None:
    """What happened last is in the state of before."""
    last = {"terminated": {"reason": "StartError", "message": RUNC, "exitCode": 128}}

    assert "cpuset.cpus" in refusal({"waiting": {"reason": "CrashLoopBackOff"}}, last)


def test_memory_that_was_too_little_for_the_runtime() -> None:
    """It says so itself."""
    text = "container init was OOM-killed (memory limit too low?)"

    assert text == refusal({"terminated": {"reason": "StartError", "message": text}})


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"running": {}},
        {"waiting": {"reason": "ContainerCreating"}},
        {"waiting": {"reason": "CreateContainerError", "message": "cannot find the image"}},
        {"terminated": {"reason": "Error", "message": "cgroup"}},
        {"terminated": {"reason": "StartError", "message": 7}},
        {"waiting": "?"},
    ],
)
def test_what_is_no_such_start(state: dict[str, Any]) -> None:
    """Whatever else fails, or runs, or is damaged."""
    assert refusal(state) == ""


def test_who_runs_again_is_well() -> None:
    """What was before counts no more."""
    last = {"terminated": {"reason": "StartError", "message": RUNC}}

    assert refusal({"running": {}}, last) == ""
    assert refused_starts.of(None) == ""
