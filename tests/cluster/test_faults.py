"""A real API server that fails: what scheduler and agent ask of it then, and that nothing is lost.

Covers: refused and expired tokens, a compacted history, 429, a reader that is too slow, kill -9
during bindings, an outage, another authority.
Does not cover: leaders (``test_scheduler``); answers that no real server gives (``tests.kube``).
"""

from __future__ import annotations

import collections
import datetime as dt
import http
import itertools
import os
import shutil
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import faulty as faults
from tests.cluster.deployed import (
    ACCOUNT,
    PODS,
    SERVER,
    SPACE,
    ended,
    given,
)
from tests.cluster.faulty import NODES, Faulty, distrusted, knocks, token
from tests.kit import deadline, k8s_lab
from tests.kit.apiserver import pki
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

MANAGER = "kube-controller-manager"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
#: Connections of all informers in seconds without a server; in a loop there are thousands.
ATTEMPTS = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    """A control plane with one scheduler and one agent."""
    with faults.begun(tmp_path_factory.mktemp("faulty")) as together:
        yield together


@pytest.fixture
def faulty(cluster: Faulty) -> Iterator[Faulty]:
    """The same without pods, whatever a test has left."""
    yield cluster
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    cluster.admin.need("DELETE", PODS, options)


def test_an_expired_token_is_read_again_from_its_file(faulty: Faulty) -> None:
    """While it is over nothing is bound, and little is asked; with the next one everything is."""
    log, pods = Path(faulty.lab.folder, "log", "audit.log"), faulty.create(1, ACCOUNT)

    def refused() -> int:
        lines = log.read_text().splitlines()
        return sum('"userAgent":"koordlet-scheduler"' in o and '"code":401' in o for o in lines)

    def expired() -> bool:
        if not refused() and not faulty.lacking(pods):
            pods.extend(faulty.create(1, ACCOUNT))
        return refused() >= 6

    deadline.until(expired, "the token is refused", seconds=90)
    pods += faulty.create(3, ACCOUNT)
    faulty.give("scheduler", token(faulty, 3600))
    faulty.bound_once(pods)
    faulty.settled()
    assert refused() < 60


def test_a_compacted_history_costs_one_list_and_loses_nothing(faulty: Faulty) -> None:
    """What was deleted while the scheduler stood still makes room: it lists, and knows it."""
    full = faulty.fill()
    faulty.bound_once(full)
    before = len(faulty.audit())
    with faulty.paused():
        # Without its cache a server answers from etcd, which says that the history is gone.
        faulty.kill_server()
        faulty.lab.processes.state["commands"][SERVER].append("--watch-cache=false")
        faulty.serve()
        faulty.lab.processes.state["commands"][SERVER].pop()
        faulty.delete(full[:4])
        new = faulty.fill(4)
        faulty.compact()
    faulty.bound_once(new)
    faulty.recovered(before)


def test_a_server_killed_during_bindings_binds_each_pod_once(faulty: Faulty) -> None:
    """After kill -9 in the middle of them every pod has a node, and no room was lost."""
    with faulty.paused():
        # As many as there is room for: what is held for a pod that is elsewhere would show.
        pods = faulty.fill(11 * NODES, "350m")
        before = len(faulty.audit())

    def begun() -> bool:
        nodes = [pod["spec"].get("nodeName") for pod in faulty.admin.items(PODS)]
        return any(nodes)

    deadline.until(begun, "the first pod is bound")
    faulty.kill_server()
    faulty.serve()
    faulty.bound_once(pods)
    faulty.recovered(before)


def test_what_a_server_refuses_for_now_comes_again_when_it_says(faulty: Faulty) -> None:
    """Of a burst beyond its seats: no binding comes again within a second, and all are made."""
    level = {
        "metadata": {"name": "narrow"},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 0,
                "lendablePercent": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            },
        },
    }
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    account = {"kind": "ServiceAccount", "serviceAccount": {"namespace": SPACE, "name": "*"}}
    flow = {
        "metadata": {"name": "narrow"},
        "spec": {
            "matchingPrecedence": 2,
            "priorityLevelConfiguration": {"name": "narrow"},
            "rules": [
                {"subjects": [account], "resourceRules": [{**everything, "clusterScope": True}]}
            ],
        },
    }

    def refused() -> list[Body]:
        events = faulty.bindings()
        return [
            e for e in events if e["responseStatus"]["code"] == http.HTTPStatus.TOO_MANY_REQUESTS
        ]

    before = len(faulty.audit())
    faulty.admin.need("POST", f"{FLOW}/prioritylevelconfigurations", level)
    faulty.admin.need("POST", f"{FLOW}/flowschemas", flow)
    pods: list[str] = []

    def burst() -> bool:
        with faulty.paused():
            pods.extend(faulty.create(24, ACCOUNT))
        faulty.bound_once(pods)
        return len(refused()) >= 5

    # It takes a moment until the server goes by that.
    deadline.until(burst, "five bindings are refused")
    faulty.admin.need("DELETE", f"{FLOW}/flowschemas/narrow")
    faulty.admin.need("DELETE", f"{FLOW}/prioritylevelconfigurations/narrow")

    asked = collections.defaultdict(list)
    for event in faulty.bindings():
        moment = dt.datetime.fromisoformat(event["requestReceivedTimestamp"])
        asked[event["objectRef"]["name"]].append(moment.timestamp())
    for path in pods:
        moments = sorted(asked[path.rpartition("/")[2]])
        gaps = [later - sooner for sooner, later in itertools.pairwise(moments)]
        assert min(gaps, default=1.0) >= 0.9, gaps
    assert given(faulty.audit()[before:], "list") == {}


def test_a_reader_that_is_too_slow_goes_on_where_it_was(faulty: Faulty) -> None:
    """The server ends its watch; it resumes, and knows the last of the changes."""
    before = len(faulty.audit())
    node, merge = "/api/v1/nodes/n1", "application/merge-patch+json"

    def note(text: str | None, **labels: str | None) -> None:
        metadata = {"annotations": {"note": text}, "labels": labels}
        faulty.admin.need("PATCH", node, {"metadata": metadata}, merge)

    def cut() -> bool:
        stopped = ended(faulty.audit()[before:])
        return any(stopped[token, "nodes"] for token in faulty.tokens["scheduler"])

    with faulty.paused():
        # More than all the buffers between the two hold, of the kernel and of the server.
        for _ in range(160):
            note(uuid.uuid4().hex * 6000)
        note(None, slow="yes")
    deadline.until(cut, "the server ends the watch of nodes")
    pods = faulty.create(2, ACCOUNT, nodeSelector={"slow": "yes"})
    assert set(faulty.bound(pods)) == {"n1"}
    faulty.listed_once(before)
    note(None, slow=None)


@pytest.mark.parametrize("seconds", [4, pytest.param(600, marks=pytest.mark.soak)])
def test_an_outage_costs_few_attempts_and_one_list(faulty: Faulty, seconds: int) -> None:
    """However long the server is away: attempts become rare, and afterwards all goes on."""
    before = len(faulty.audit())
    manager = faulty.lab.processes.pid(MANAGER)
    faulty.kill_server()
    # It would be counted, too.
    os.kill(manager, signal.SIGSTOP)
    try:
        attempts = knocks(faulty.port, seconds)
    finally:
        os.kill(manager, signal.SIGCONT)
    faulty.serve()
    pods = faulty.create(5, ACCOUNT)
    faulty.bound_once(pods)
    faulty.recovered(before)
    assert attempts <= ATTEMPTS * max(1, seconds / 100), attempts


def test_another_authority_is_trusted_without_a_restart(faulty: Faulty, tmp_path: Path) -> None:
    """The server comes back with another CA's certificate: refused until the file has that CA."""
    before = len(faulty.audit())
    ours, other = faulty.lab.pki, pki.Authority(tmp_path)
    faulty.kill_server()
    certificate, key = other.sign("server")
    shutil.copyfile(certificate, ours / "apiserver.crt")
    shutil.copyfile(key, ours / "apiserver.key")
    with (ours / "ca.crt").open("ab") as bundle:
        bundle.write(other.certificate.read_bytes())
    faulty.admin.close()
    faulty.admin = k8s_lab.Admin(faulty.lab)
    distrusted(faulty.port, other)
    faulty.serve()
    pods = faulty.create(5, ACCOUNT)
    shutil.copyfile(other.certificate, faulty.folder / "ca.crt")
    faulty.bound_once(pods)
    faulty.recovered(before)
