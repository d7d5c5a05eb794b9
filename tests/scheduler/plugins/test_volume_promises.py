"""Promised volumes: written once, waited for, given up where somebody has withdrawn them."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.framework import RefusedError, profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.storage import SELECTED, Storage
from koordlet.scheduler.plugins import volume_promises
from koordlet.scheduler.plugins.volume_binding import VolumeBinding
from tests.kit import clusters
from tests.scheduler.plugins.test_volume_binding import kind
from tests.scheduler.plugins.test_volumes import claim, mounts, volume

NAME = "default-scheduler"
OWNED: dict[str, Any] = {"claimRef": {"namespace": "d", "name": "c", "uid": "uid-c"}}


class PromisedPod:
    """A pod that was promised a volume on the node ``n``, at second 0; the claim's class decides.

    ``local``: it takes the volume ``v``; ``made``: a provisioner makes one.
    """

    def __init__(self, storage_class: str, arguments: dict[str, Any] | None = None) -> None:
        self.now = 0.0
        served = profile.default(NAME, {VolumeBinding.name: arguments or {}})
        plugin = served.find(VolumeBinding)
        assert plugin is not None
        self.plugin, self.storage = plugin, Storage()
        plugin.storage = self.storage
        plugin.attach(lambda: self.now, {})
        self.core = Core({NAME: served})
        for body in (kind("local"), kind("made", "csi.example"), claim("c", kind=storage_class)):
            self.storage.add(body)
        self.storage.add(volume("v", kind="local", on="n"))
        self.core.node(None, nodes.decode(clusters.node("n")), 0.0)
        waiting = self.core.decoder.decode(clusters.pod("p", **mounts("c")), 0)
        self.core.pod(None, waiting, 0.0)
        outcome = self.core.step(0.0)
        assert isinstance(outcome, Bind)
        self.pod: Pod = outcome.pod

    def select(self, node: str, *, bound_to: str = "", marked: bool = True) -> None:
        """The claim as the server shows it: its selected node and its volume."""
        body = claim("c", kind="made", volume=bound_to)
        notes = {SELECTED: node} if node else {}
        if bound_to and marked:
            notes[volume_promises.BOUND] = "yes"
        body["metadata"]["annotations"] = notes
        self.storage.add(body)

    def write(self) -> None:
        """The store has answered at once, and the binder asks for the first time."""
        self.plugin.writes(self.pod, "n")
        self.wait()

    def wait(self) -> float:
        """Seconds until the next look."""
        return self.plugin.preparing(self.pod, "n")


def test_a_promise_is_written_once() -> None:
    """Written again, it would undo that a provisioner has given the claim back."""
    promised = PromisedPod("made")
    ((ref, patch),) = promised.plugin.writes(promised.pod, "n")
    assert (ref.name, patch) == ("c", {"metadata": {"annotations": {SELECTED: "n"}}})
    promised.wait()
    assert list(promised.plugin.writes(promised.pod, "n")) == []


def test_a_claim_is_waited_for_until_its_volume_is_there_and_marked() -> None:
    """A name alone is a wish; a volume that no informer shows cannot be judged."""
    promised = PromisedPod("made")
    promised.write()
    assert promised.wait() > 0
    promised.storage.add(volume("new", kind="made", on="n"))
    promised.select("n", bound_to="new", marked=False)
    assert promised.wait() > 0
    promised.select("n", bound_to="new")
    assert promised.wait() == 0
    promised.storage.drop(volume("new"))
    assert promised.wait() > 0


@pytest.mark.parametrize("selected", ["", "elsewhere"])
def test_a_provisioner_that_gives_the_claim_back_ends_the_promise(selected: str) -> None:
    """For some seconds it may be that the write was not seen yet."""
    promised = PromisedPod("made")
    promised.write()
    promised.now = 5.0
    assert promised.wait() > 0
    promised.select("n")
    promised.now = 500.0
    assert promised.wait() > 0
    promised.select(selected)
    with pytest.raises(RefusedError, match='provisioning failed for PVC "c"'):
        promised.wait()


def test_a_volume_that_was_made_elsewhere_ends_the_promise_at_once() -> None:
    """The pod would never start on this node."""
    promised = PromisedPod("made")
    promised.write()
    promised.storage.add(volume("new", kind="made", on="m"))
    promised.select("n", bound_to="new")
    with pytest.raises(RefusedError, match='pv "new" node affinity doesn\'t match node "n"'):
        promised.wait()


def test_a_volume_whose_claim_was_taken_out_ends_the_promise() -> None:
    """Somebody else may have it by now; so, too, where it is gone."""
    promised = PromisedPod("local")
    ((ref, _),) = promised.plugin.writes(promised.pod, "n")
    assert (ref.name, promised.wait() > 0) == ("v", True)
    promised.storage.add(volume("v", kind="local", on="n", **OWNED))
    promised.now = 60.0
    assert promised.wait() > 0
    promised.storage.add(volume("v", kind="local", on="n"))
    with pytest.raises(RefusedError, match='ClaimRef got reset for pv "v"'):
        promised.wait()
    promised.storage.drop(volume("v"))
    with pytest.raises(RefusedError, match='pv "v" not found'):
        promised.wait()


def test_a_claim_that_goes_ends_the_promise() -> None:
    """Nothing will be bound to it."""
    promised = PromisedPod("made")
    promised.write()
    promised.storage.drop(claim("c"))
    with pytest.raises(RefusedError, match='persistentvolumeclaim "c" not found'):
        promised.wait()


@pytest.mark.parametrize(("arguments", "seconds"), [({}, 600), ({"bindTimeoutSeconds": 30}, 30)])
def test_a_claim_is_waited_for_as_long_as_the_arguments_say(
    arguments: dict[str, Any], seconds: int
) -> None:
    """Ten minutes, as with kube-scheduler, unless they name another time."""
    promised = PromisedPod("made", arguments)
    promised.write()
    promised.select("n")
    promised.now = seconds - 1.0
    assert promised.wait() > 0
    promised.now += 1.0
    with pytest.raises(RefusedError, match=f"d/c not bound within {seconds} s"):
        promised.wait()


def test_a_pod_whose_promise_ended_is_promised_anew() -> None:
    """The failed binding gives back the promise and what it wrote is forgotten."""
    promised = PromisedPod("made")
    promised.write()
    assert promised.core.unbound(promised.pod, 20.0)
    again = promised.core.step(60.0)
    assert isinstance(again, Bind)
    assert len(promised.plugin.writes(again.pod, "n")) == 1


def test_no_volume_is_promised_by_two_profiles() -> None:
    """The second would take it from a pod that then waits for it until its time is over."""
    profiles = {name: profile.default(name) for name in (NAME, "other")}
    stored = Storage()
    promised: dict[str, tuple[str, str]] = {}
    for plugin in profile.plugins(profiles, VolumeBinding):
        plugin.attach(lambda: 0.0, promised)
        plugin.storage = stored
    core = Core(profiles)
    for body in (kind("local"), claim("c", kind="local"), claim("d", kind="local")):
        stored.add(body)
    stored.add(volume("v", kind="local", on="n"))
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    for number, (name, scheduler) in enumerate((("c", NAME), ("d", "other"))):
        body = clusters.pod(name, schedulerName=scheduler, **mounts(name))
        core.pod(None, core.decoder.decode(body, number), 0.0)
    first, second = core.step(0.0), core.step(0.0)

    assert (type(first), type(second)) == (Bind, Refusal)


def test_a_write_that_took_long_is_given_as_long_to_be_seen_as_any() -> None:
    """The server answered after 20 s, and the watch has yet to show it: no provisioner failed."""
    promised = PromisedPod("made")
    promised.plugin.writes(promised.pod, "n")
    promised.now = 20.0
    assert promised.wait() > 0
    promised.now = 31.0
    with pytest.raises(RefusedError, match="provisioning failed"):
        promised.wait()
