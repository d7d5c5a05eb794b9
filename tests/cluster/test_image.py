"""The image as a release has it, run by a real containerd as the DaemonSet's pod.

Covers: that a runtime takes the archive, that the agent enforces from it with what the manifest
gives it, the command of the documents, and what it leaves.
Does not cover: what the agent decides (``test_node_life``), that two builds are one image
(``tests.tools.release.test_release``).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.deploy.documents import DEPLOY
from tests.kit import installed, k8s_lab, kubelet_node, live, needs
from tools.release import __main__ as release

#: Building takes a minute of a processor.
pytestmark = [pytest.mark.cluster, pytest.mark.soak]

RESERVE = "policies: {reserved_cpus: {mode: enforce, cpus: '0'}, shared_pools: {mode: enforce}}\n"
_PATIENCE = 300.0


def test_the_image_runs_as_the_daemonset(tmp_path: Path) -> None:
    """Its agent limits a pod, answers a person, and puts all back."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    assert release.main(["wheel", "image", "--into", str(tmp_path / "dist")]) == 0
    [archive] = (tmp_path / "dist").glob("*.oci.tar")
    with kubelet_node.node(tmp_path, "containerd", {}, audit=True, scheduler=True) as node:
        inside = node.cluster.the_node()
        ctr = str(k8s_lab.programs("ctr") / "ctr")
        words = (ctr, "--address", inside.socket, "--namespace", "k8s.io", "images", "import")
        more = ("--local", "--snapshotter", "native", str(archive))
        subprocess.run([*inside.enter(), *words, *more], check=True, timeout=_PATIENCE)
        node.start("ls", "LS")
        kubelet_node.settled(node, {"ls": "0-1"})

        agent = installed.install(node, RESERVE, DEPLOY, image=True)

        kubelet_node.settled(node, {"ls": "1"})
        pod = agent.pod()["status"]["containerStatuses"][0]
        assert pod["image"] == "docker.io/library/koordlet:0.1.0"
        root = f"/proc/{agent.process()}/root"
        shown = subprocess.run(
            ["chroot", root, "/opt/koordlet/bin/koordlet", "--version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert shown.stdout == "koordlet 0.1.0\n"
        agent.uninstall()
        kubelet_node.settled(node, {"ls": "0-1"})
