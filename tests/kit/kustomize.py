"""Builds a kustomization, as far as ours go: Debian's kubectl is too old for any of them.

Covers: ``resources`` (files, folders), ``components``, ``patches`` (JSON patches with a target).
Does not cover: everything else; a field that it does not know is an error. Where a newer kubectl is
installed, a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.kit.apiserver import jsonpatch

Documents = list[dict[str, Any]]

_KNOWN = {"apiVersion", "kind", "resources", "components", "patches"}


def build(folder: Path) -> Documents:
    """All documents of a folder."""
    return _built(folder, [])


def _built(folder: Path, base: Documents) -> Documents:
    """What the folder makes of what was there before, which concerns components."""
    body = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert body.keys() <= _KNOWN, body.keys() - _KNOWN
    assert (body["kind"] == "Component") is bool(base), f"{folder}: {body['kind']}"
    found = list(base)
    for name in body.get("resources", ()):
        found += _resource(folder / name)
    for name in body.get("components", ()):
        found = _built((folder / name).resolve(), found)
    for patch in body.get("patches", ()):
        found = _patched(found, patch)
    return found


def _resource(path: Path) -> Documents:
    if path.is_dir():
        return build(path.resolve())
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def _patched(found: Documents, patch: dict[str, Any]) -> Documents:
    target = (patch["target"]["kind"], patch["target"]["name"])
    operations = yaml.safe_load(patch["patch"])
    hit = [(one["kind"], one["metadata"]["name"]) == target for one in found]
    assert sum(hit) == 1, f"{target} is there {sum(hit)} times"
    return [
        jsonpatch.apply(one, operations) if meant else one
        for one, meant in zip(found, hit, strict=True)
    ]
