"""Tests that share something of the machine never run beside each other."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import conftest


def test_all_modules_that_start_a_kubelet_go_to_one_worker() -> None:
    """Two kubelets of a machine would be one node, with the groups and mounts of both."""
    folder = Path(conftest.__file__).parent
    starting = {
        path.name for path in folder.glob("test_*.py") if "kubelet_node." in path.read_text()
    }
    assert starting == set(conftest.NODE)
