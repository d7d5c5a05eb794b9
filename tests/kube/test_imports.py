"""What the room costs to load: nothing by its name, and never the typed models."""

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
    """Whoever only speaks of objects loads neither the package nor HTTP."""
    assert not loaded(module) & {"kubernetes", "msgspec", "h11", "sqlite3", "yaml"}


def test_no_typed_models() -> None:
    """The adapter loads the package's transport settings, and no model and no API class."""
    names = loaded("koordlet.kube.adapter")

    assert "kubernetes.client.configuration" in names
    assert not [name for name in names if name.startswith(("kubernetes.client.models.", "aiohttp"))]
    assert not [name for name in names if name.startswith("kubernetes.client.api.")]
