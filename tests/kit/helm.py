"""The lab's Helm on the chart of ``deploy/``.

Covers: rendering, releases on a cluster. Does not cover: what is in them (the tests).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.documents import DEPLOY
from tests.kit import k8s_lab

CHART = DEPLOY / "chart"
SPACE = "koordlet-system"
#: Helm itself gives up before: after five minutes an operation, of which a rollback makes three.
_PATIENCE = 1000.0


def run(
    *words: str, kubeconfig: Path | None = None, namespace: str = SPACE
) -> subprocess.CompletedProcess[str]:
    """The command; the caller looks at its status."""
    where = [] if kubeconfig is None else [f"--kubeconfig={kubeconfig}"]
    return subprocess.run(
        [str(k8s_lab.programs("helm") / "helm"), *words, f"--namespace={namespace}", *where],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )


def rendered(*settings: str, namespace: str = SPACE) -> list[dict[str, Any]]:
    """All documents, hooks among them."""
    words = ("template", "koordlet", str(CHART), *settings_of(settings))
    done = run(*words, namespace=namespace)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def settings_of(settings: Sequence[str]) -> list[str]:
    """Options of ``key=value`` pairs."""
    return [word for setting in settings for word in ("--set", setting)]
