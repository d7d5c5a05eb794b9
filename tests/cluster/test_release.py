"""A release on a real node: its image, run by a real containerd; its chart, by a real Helm.

Covers: install, upgrade, rollback and removal as the manual has them, seen by a pod's CPUs; what is
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
from tests.kit import deadline, helm, installed, k8s_lab, kubelet_node, live, needs
from tools.release import __main__ as release

#: Building takes a minute of a processor.
pytestmark = [pytest.mark.cluster, pytest.mark.soak]

_NAME = f"koordlet:{koordlet.__version__}"
_PATIENCE = 300.0
#: Where the manifest has the agent's server; nothing else of the machine may be there.
_PORT = 9316
#: Replaces the agents' pods at once, so that nobody waits for a kubelet to renew a file.
_REPLACED = "agent.resources.requests.cpu=60m"


def test_a_release_comes_and_goes(tmp_path: Path) -> None:
    """Each step is seen at the pod; then all is as before, but for what the manual says stays."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    assert release.main(["wheel", "chart", "image", "--into", str(tmp_path / "dist")]) == 0
    [archive] = (tmp_path / "dist").glob("*.oci.tar")
    [chart] = (tmp_path / "dist").glob("*.tgz")
    with kubelet_node.node(tmp_path, "containerd", {}, audit=True, scheduler=True) as node:
        _import(node, archive)
        server = _server(node)
        node.start("ls", "LS")
        kubelet_node.settled(node, {"ls": "0-1"})
        before, control_files = server.names(), test_node_life.control_files(node)
        agent = installed.Installed(node, _PORT)

        server.helm("install", "koordlet", str(chart), *_reserving(node, "0"), "--wait")
        kubelet_node.settled(node, {"ls": "1"})
        server.helm("test", "koordlet")
        shown = ["chroot", f"/proc/{agent.process()}/root", "/opt/koordlet/bin/koordlet"]
        version = subprocess.check_output([*shown, "--version"], text=True, timeout=_PATIENCE)
        more = ("--reuse-values", *_reserving(node, "1"), "--set", _REPLACED, "--wait")
        server.helm("upgrade", "koordlet", str(chart), *more)
        kubelet_node.settled(node, {"ls": "0"})
        server.helm("rollback", "koordlet", "1", "--wait")
        kubelet_node.settled(node, {"ls": "1"})
        assert version == f"{_NAME.replace(':', ' ')}\n"
        agent.follow("### Remove it", str(k8s_lab.programs("helm")))

        assert {name[0] for name in server.left(before)} == {"customresourcedefinitions"}
        assert agent.reported() == {}
        keys = test_node_life.paths(test_node_life.the_node(node))
        assert [key for key in keys if "koord" in key] == [f"docker.io/library/{_NAME}"]
        test_node_life.as_before(node, control_files)
        stay = {path.name for path in (node.place / "lib").iterdir()}
        assert stay == {"checkpoint", "last-config.yaml"}, "no journal: nothing is to be restored"
        assert agent.forbidden() == []
        server.admin.close()


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
    labels, spec = agents["spec"]["selector"]["matchLabels"], agents["spec"]["template"]["spec"]
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
        status, pod = server.admin.ask(
            "POST", f"/api/v1/namespaces/{helm.SPACE}/pods?dryRun=All", trial
        )
        return status == http.client.CREATED and host in pod["spec"]["containers"][0]["env"]

    deadline.until(adapted, "the server adapts agents' pods")


def _reserving(node: kubelet_node.Node, cpus: str) -> tuple[str, ...]:
    """Values: the agents reserve a CPU, and know where this node has its groups and its kubelet."""
    inside, ports = node.cluster.the_node(), node.cluster.processes.state["ports"]
    config = {
        "cgroups": {"root": node.group},
        "kubelet": {"address": f"{inside.address}:{ports['kubelet']}"},
        "policies": {"reserved_cpus": {"cpus": cpus}},
    }
    return "--set-json", f"agent.config={json.dumps(config)}"
