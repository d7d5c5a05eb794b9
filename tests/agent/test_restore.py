"""Restoring goes on without what it cannot reach, and says so."""

from __future__ import annotations

from pathlib import Path

from koordlet.agent import restore
from koordlet.config import schema
from koordlet.host.fs import live_host


def test_credentials_that_are_gone(tmp_path: Path) -> None:
    """What the cluster was told is named as failed: files were put back before, and count."""
    config = schema.Config.model_validate(
        {
            "kube": {"kubeconfig": str(tmp_path / "nowhere")},
            "report": {"objects": {"taints": "NoSchedule"}},
        }
    )
    done = restore.withdraw(config, live_host.LiveHost())

    (failed,) = done.failed
    assert failed.target.startswith("node/")
    assert "there is no such file" in failed.detail
