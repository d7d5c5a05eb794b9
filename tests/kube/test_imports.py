"""What the room costs to load: nothing by its name, and never a client library."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LOADED = "import sys; print(*sys.modules)"


def loaded(module: str) -> set[str]:
    """The modules that importing one of ours brings."""
    ran = subprocess.run(
        [sys.executable, "-c", f"import {module}; {_LOADED}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    "module", ["koordlet.kube", "koordlet.kubeapi.informer", "koordlet.kubeapi.objects"]
)
def test_the_port_is_light(module: str) -> None:
    """Whoever only speaks of objects loads no HTTP."""
    assert not loaded(module) & {"msgspec", "h11", "sqlite3", "yaml"}


def test_the_adapter_brings_no_client_library() -> None:
    """Beside HTTP and the decoder: each agent of a cluster has it in memory."""
    heavy = {"kubernetes", "urllib3", "requests", "pydantic", "yaml", "http.client"}

    names = loaded("koordlet.kube.adapter")

    assert {"h11", "msgspec"} <= names
    assert not names & heavy
