"""kube-scheduler and ours about pods that wait while the cluster around them changes.

Covers: whom a change wakes, and what becomes of them: nodes that are cordoned, tainted, labelled,
larger, smaller, deleted and made again, pods deleted, labelled, tolerant, let go, claims and
volumes that come late, namespaces labelled. The same steps are done for kube-scheduler and then,
in a cluster that begins anew, for ours: after each of them every pod is where it is there.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.changing import ChangingCluster, Step
from tests.cluster.deployed import ACCOUNT, Deployed
from tests.cluster.fleet import shared
from tests.cluster.fleet_store import MERGE, REFUSED, FleetStore, key_of
from tests.cluster.kube_scheduler import CONTROLLERS, configuration, same_words
from tests.kit import deadline, k8s_lab
from tests.oracle.clusters import SPACES
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

STEPS, SOAK = 30, 60
THEIRS = "default-scheduler"
#: Seconds without news of any pod after which nobody tries anything any more.
_QUIET = 1.5
#: Seconds in which ours has to come to the same.
_PATIENCE = 6.0
_PODS = "/api/v1/pods"
_BACKOFF = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles: [{schedulerName: koordlet-scheduler}]
"""

_ON, _GONE = "on node ", "gone"
#: Of each pod: its node, or why it has none.
Places = dict[str, str]


class Play:
    """The steps of one cluster, for the pods of one scheduler."""

    def __init__(self, lab: Any, seed: int, scheduler: str) -> None:
        self._admin, self._scheduler = k8s_lab.Admin(lab), scheduler
        self._cluster = ChangingCluster(seed)
        store = FleetStore(self._admin)
        store.create(self._cluster.beginning())
        for name, labels in SPACES.items():
            patch = {"metadata": {"labels": labels}}
            self._admin.need("PATCH", f"/api/v1/namespaces/{name}", patch, MERGE)
        self._admin.hollow_nodes(self._cluster.nodes())
        self._changes = k8s_lab.Changes(lab, _PODS)
        self._last: Places = {}

    def close(self) -> None:
        """Hang up."""
        self._changes.close()
        self._admin.close()

    def step(self) -> Step:
        """Do the next step."""
        step = self._cluster.step()
        body = step.body
        if step.makes_pod and isinstance(body, dict):
            body["spec"]["schedulerName"] = self._scheduler
        if step.makes_node:
            self._admin.hollow_nodes([body])
        else:
            # Who was to be changed may be gone.
            self._admin.ask(step.method, step.path, body, step.kind)
        return step

    def places(self) -> Places:
        """Where every pod is now."""
        return {key_of(body): _place(body) for body in self._admin.items(_PODS)}

    def rest(self) -> Places:
        """The same once nobody tries anything any more."""
        with contextlib.suppress(TimeoutError):
            while True:
                self._changes.next("anything", _QUIET)
        return self.places()

    def apart(self, step: Step, places: Places, before: Places) -> list[str]:
        """The pods of which ours says otherwise, also after a while, in words."""
        own = dict(self._last)
        with contextlib.suppress(AssertionError):
            deadline.until(
                lambda: not self._apart(step, places, before, own), "", seconds=_PATIENCE
            )
        return self._apart(step, places, before, own)

    def _apart(self, step: Step, places: Places, before: Places, own: Places) -> list[str]:
        """Words count of a pod that both have tried since the step before.

        Neither tries everybody again after each change, kube-scheduler says nothing of a pod whose
        ResourceClaim is missing, and a node that has come is not ready yet for who is fast.
        """
        self._last = self.places()
        several = []
        for key in sorted(places.keys() | self._last.keys()):
            theirs, ours = places.get(key, _GONE), self._last.get(key, _GONE)
            says = not step.makes_node and not theirs.endswith(": ")
            tried = before.get(key) != theirs and own.get(key) != ours
            apart = says and tried and not same_words(theirs, ours)
            if apart or _settled(theirs) != _settled(ours):
                several.append(f"{key}: {theirs!r}, ours {ours!r}")
        return several

    def run_pods(self) -> None:
        """As kubelets: of equal pods the one that came last goes first."""
        bodies = [
            body
            for body in self._admin.items(_PODS)
            if body["spec"].get("nodeName") and body["status"]["phase"] == "Pending"
        ]
        for body in sorted(bodies, key=_number):
            number = _number(body)
            moment = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
            status = {"status": {"phase": "Running", "startTime": moment}}
            space, name = key_of(body).split("/")
            path = f"/api/v1/namespaces/{space}/pods/{name}/status"
            assert self._admin.ask("PATCH", path, status, MERGE)[0] < REFUSED


def _settled(place: str) -> str:
    """Its node, the one that is promised, or that it has gone; no words."""
    return place if place == _GONE or place.startswith(_ON) else place.partition(": ")[0]


def _number(body: Body) -> int:
    return int(body["metadata"]["name"].removeprefix("p"))


def _place(body: Body) -> str:
    if node := body["spec"].get("nodeName"):
        return f"{_ON}{node}{', leaving' if 'deletionTimestamp' in body['metadata'] else ''}"
    conditions = body["status"].get("conditions", ())
    words = (own.get("message", "") for own in conditions if own["type"] == "PodScheduled")
    return f"waits for {body['status'].get('nominatedNodeName')}: {next(words, '')}"


@pytest.fixture(scope="module", name="lab")
def made_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A control plane with both schedulers."""
    folder = tmp_path_factory.mktemp("changes")
    (home := folder / "k8s").mkdir()
    flags = {
        "kube-scheduler": configuration(home, **_BACKOFF),
        "kube-controller-manager": [f"{CONTROLLERS},-pod-garbage-collector-controller"],
    }
    with k8s_lab.cluster(home, scheduler=True, nodes=1, args=flags) as lab:
        ours = Deployed(lab, folder, _CONFIG)
        try:
            ours.install(0)
            for path, bodies in shared().items():
                for body in bodies:
                    ours.admin.need("POST", path, body)
            ours.start("scheduler")
            ours.leader()
            yield lab
        finally:
            ours.close()


def recorded(lab: Any, seed: int, steps: int) -> list[tuple[Step, Places]]:
    """What kube-scheduler made of each step."""
    several = []
    with contextlib.closing(Play(lab, seed, THEIRS)) as play:
        for _ in range(steps):
            step = play.step()
            several.append((step, play.rest()))
            play.run_pods()
    return several


def run(lab: Any, seed: int, steps: int = STEPS) -> collections.Counter[str]:
    """What became of the pods, counted; fails with what ours makes of a step otherwise."""
    theirs, wrong = recorded(lab, seed, steps), []
    before: Places = {}
    with contextlib.closing(Play(lab, seed, ACCOUNT)) as play:
        for number, (step, places) in enumerate(theirs):
            assert play.step().words == step.words
            if apart := play.apart(step, places, before):
                wrong += [f"step {number}, {step.words}:", *apart]
                break  # from here on the clusters differ
            before = places
            play.run_pods()
    assert not wrong, "\n".join([f"seed {seed}", *wrong])
    return collections.Counter(
        "placed" if place.startswith(_ON) else "waits"
        for _, places in theirs
        for place in places.values()
    )


def test_ours_makes_of_changes_what_kube_scheduler_makes(lab: Any) -> None:
    """Step by step: every pod is on the same node, or waits with the same words."""
    counts = run(lab, 1)

    assert counts["placed"] > 0
    assert counts["waits"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
def test_a_soak_of_changes(lab: Any, seed: int) -> None:
    """The same for many clusters."""
    run(lab, seed, SOAK)
