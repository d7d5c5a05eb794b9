"""A release on a real node: its image, run by a real containerd; its chart, by a real Helm.

Covers: install, a stage that an alert stops, one that stays, the switch for the whole fleet,
rollback and removal as the manual has them, seen by a pod's CPUs and by a real Prometheus; what is
more on server and machine afterwards.
Does not cover: what the agent decides (``test_node_life``), all that the chart can bring
(``test_chart``), that two builds are one image (``tests.tools.release.test_release``).
"""

from __future__ import annotations

import http.client
import json
import subprocess
import urllib.parse
from pathlib import Path

import pytest

import koordlet
from tests.cluster import test_chart, test_node_life
from tests.kit import deadline, helm, installed, k8s_lab, kubelet_node, live, needs, prometheus
from tools.release import __main__ as release

#: Building takes a minute of a processor.
pytestmark = [pytest.mark.cluster, pytest.mark.soak, prometheus.NEEDED]

_NAME = f"koordlet:{koordlet.__version__}"
_PATIENCE = 300.0
#: Where the manifest has the agent's server; nothing else of the machine may be there.
_PORT = 9316
#: A kubelet renews the files of a ConfigMap that often.
_SOON = {"syncFrequency": "5s"}
_PODS = f"/api/v1/namespaces/{helm.SPACE}/pods"
#: As the manual has it.
_SAFELY = ("--rollback-on-failure", "--wait")


def test_a_release_comes_and_goes(tmp_path: Path) -> None:
    """Each step is seen at the pod; then all is as before, but for what the manual says stays."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    assert release.main(["wheel", "chart", "image", "--into", str(tmp_path / "dist")]) == 0
    [archive] = (tmp_path / "dist").glob("*.oci.tar")
    [chart] = (tmp_path / "dist").glob("*.tgz")
    with kubelet_node.node(tmp_path, "containerd", _SOON, audit=True, scheduler=True) as node:
        _import(node, archive)
        server = _server(node)
        node.start("ls", "LS")
        kubelet_node.settled(node, {"ls": "0-1"})
        before, control_files = server.names(), test_node_life.control_files(node)
        agent = installed.Installed(node, _PORT)

        server.helm("install", "koordlet", str(chart), *_observing(node), "--wait")
        server.helm("test", "koordlet")
        shown = ["chroot", f"/proc/{agent.process()}/root", "/opt/koordlet/bin/koordlet"]
        version = subprocess.check_output([*shown, "--version"], text=True, timeout=_PATIENCE)
        assert version == f"{_NAME.replace(':', ' ')}\n"
        assert node.cpus() == {"ls": "0-1"}, "it only observes"

        _label(node, "canary")
        _in_stages(server, agent, _upgrade(chart))
        pods = _pods(server, "koordlet")
        server.helm(*_upgrade(chart), "--set", "suspend=true")
        kubelet_node.settled(node, {"ls": "0-1"})
        server.helm("rollback", "koordlet")
        kubelet_node.settled(node, {"ls": "0"})
        assert _pods(server, "koordlet") == pods, "no pod restarts for the switch"
        agent.follow("### Remove it", str(k8s_lab.programs("helm")))
        _label(node, None)

        assert {name[0] for name in server.left(before)} == {"customresourcedefinitions"}
        assert agent.reported() == {}
        keys = test_node_life.paths(test_node_life.the_node(node))
        assert [key for key in keys if "koord" in key] == [f"docker.io/library/{_NAME}"]
        test_node_life.as_before(node, control_files)
        stay = {path.name for path in (node.place / "lib").iterdir()}
        known = {"checkpoint", "last-answer.json", "last-config.yaml"}
        assert stay == known, "no journal: nothing is to be restored"
        assert agent.forbidden() == []
        server.admin.close()


def _in_stages(
    server: test_chart.Cluster, agent: installed.Installed, upgrade: tuple[str, ...]
) -> None:
    """A pool enforces: an alert takes it back, without one it stays; then it reserves another CPU.

    A stage that has passed is in force, also where no pod was replaced.
    """
    node, enforce = agent.node, "pools.configs.canary.mode=enforce"
    fires = {"alert": "KoordletContested", "expr": "koordlet_enforcing == 1"}
    place, address = node.place / "prometheus", node.cluster.the_node().address
    scraped = f"127.0.0.1:{agent.port}"
    with prometheus.serving(place, host=address, koordlet=scraped) as watching:
        watching.follow([{"name": "test", "rules": [fires]}])
        stage = (enforce, f"rollout.prometheus={watching.url}", "rollout.seconds=60")
        words = (*upgrade, *_SAFELY, *helm.settings_of(stage))
        done = helm.run(*words, kubeconfig=server.lab.kubeconfig)
        assert (done.returncode, "koordlet-rollout" in done.stderr) == (1, True), done.stderr
        kubelet_node.settled(node, {"ls": "0-1"})
        [watch] = _pods(server, "koordlet-rollout")
        assert "KoordletContested" in server.admin.ask("GET", f"{_PODS}/{watch}/log")[1]

        watching.follow([])
        stage = (enforce, f"rollout.prometheus={watching.url}", "rollout.seconds=5")
        server.helm(*upgrade, *_SAFELY, *helm.settings_of(stage))
        kubelet_node.settled(node, {"ls": "1"})
        other = "pools.configs.canary.policies.reserved_cpus.cpus=1"
        server.helm(*upgrade, *_SAFELY, "--set-string", other)
        assert node.cpus() == {"ls": "0"}, "a stage that has passed is in force"


def _label(node: kubelet_node.Node, pool: str | None) -> None:
    """As ``kubectl label node`` does."""
    body = {"metadata": {"labels": {"koordlet.io/pool": pool}}}
    merge = "application/merge-patch+json"
    node.cluster.request("PATCH", f"/api/v1/nodes/{node.name}", body, merge)


def _upgrade(chart: Path) -> tuple[str, ...]:
    return "upgrade", "koordlet", str(chart), "--reuse-values"


def _pods(server: test_chart.Cluster, program: str) -> list[str]:
    """Names of a program's pods, without those that end."""
    path = f"{_PODS}?labelSelector=app.kubernetes.io/name%3D{program}"
    pods = [pod["metadata"] for pod in server.admin.items(path)]
    return [pod["name"] for pod in pods if "deletionTimestamp" not in pod]


def _import(node: kubelet_node.Node, archive: Path) -> None:
    """The runtime takes the archive as it is."""
    inside, ctr = node.cluster.the_node(), str(k8s_lab.programs("ctr") / "ctr")
    words = (ctr, "--address", inside.socket, "--namespace", "k8s.io", "images", "import")
    more = ("--local", "--snapshotter", "native", str(archive))
    subprocess.run([*inside.enter(), *words, *more], check=True, timeout=_PATIENCE)
    installed.share_mounts(node)


def _server(node: kubelet_node.Node) -> test_chart.Cluster:
    """The server, with the release's namespace, and nothing yet of the release."""
    server = test_chart.Cluster(node.cluster)
    for kind in ("clusterroles", "clusterrolebindings"):
        server.admin.need("DELETE", f"{kubelet_node.ROLES}/{kind}/koordlet")
    server.admin.need("POST", "/api/v1/namespaces", {"metadata": {"name": helm.SPACE}})
    _adapt(server, node)
    return server


def _adapt(server: test_chart.Cluster, node: kubelet_node.Node) -> None:
    """The server gives agents' pods what this node lacks, so the release stays as it is.

    A way to the server, because no Service has an address here; a directory of this node.
    """
    [agents] = (document for document in helm.rendered() if document["kind"] == "DaemonSet")
    # Not the selector, which is of one pool.
    labels, spec = agents["metadata"]["labels"], agents["spec"]["template"]["spec"]
    lib = [volume["name"] for volume in spec["volumes"]].index("lib")
    where = urllib.parse.urlsplit(node.cluster.server)
    host = {"name": "KUBERNETES_SERVICE_HOST", "value": where.hostname}
    port = {"name": "KUBERNETES_SERVICE_PORT", "value": str(where.port)}
    operations = (
        ("add", "containers/0/env/-", host),
        ("add", "containers/0/env/-", port),
        ("replace", f"volumes/{lib}/hostPath/path", str(node.place / "lib")),
    )
    patches = (
        f"JSONPatch{{op: '{op}', path: '/spec/{path}', value: {json.dumps(value)}}}"
        for op, path, value in operations
    )
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policy = {
        "matchConstraints": {
            "resourceRules": [{**pods, "operations": ["CREATE"]}],
            "objectSelector": {"matchLabels": labels},
        },
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{', '.join(patches)}]"}}
        ],
        "reinvocationPolicy": "Never",
    }
    name, kind = "this-node", "MutatingAdmissionPolicy"
    api = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    for body in (
        {**api, "kind": kind, "spec": policy},
        {**api, "kind": f"{kind}Binding", "spec": {"policyName": name}},
    ):
        status, answer = k8s_lab.strict(server.admin, body, dry="")
        assert status < http.client.BAD_REQUEST, answer
    trial = {"metadata": {"name": "trial", "labels": labels}, "spec": spec}
    trial["spec"].pop("serviceAccountName")

    def adapted() -> bool:
        status, pod = server.admin.ask("POST", f"{_PODS}?dryRun=All", trial)
        return status == http.client.CREATED and host in pod["spec"]["containers"][0]["env"]

    deadline.until(adapted, "the server adapts agents' pods")


def _observing(node: kubelet_node.Node) -> tuple[str, ...]:
    """Values: the agents would reserve a CPU, and know where this node has groups and kubelet."""
    inside, ports = node.cluster.the_node(), node.cluster.processes.state["ports"]
    config = {
        "mode": "observe",
        "cgroups": {"root": node.group},
        "kubelet": {"address": f"{inside.address}:{ports['kubelet']}"},
        "policies": {"reserved_cpus": {"cpus": "0"}},
    }
    return "--set-json", f"agent.config={json.dumps(config)}"
