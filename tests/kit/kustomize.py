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
    documents = list(base)
    for name in body.get("resources", ()):
        documents += _resource(folder / name)
    for name in body.get("components", ()):
        documents = _built((folder / name).resolve(), documents)
    for patch in body.get("patches", ()):
        documents = _patched(documents, patch)
    return documents


def _resource(path: Path) -> Documents:
    if path.is_dir():
        return build(path.resolve())
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _patched(documents: Documents, patch: dict[str, Any]) -> Documents:
    target = (patch["target"]["kind"], patch["target"]["name"])
    operations = yaml.safe_load(patch["patch"])
    hit = [(document["kind"], document["metadata"]["name"]) == target for document in documents]
    assert sum(hit) == 1, f"{target} is there {sum(hit)} times"
    return [
        jsonpatch.apply(document, operations) if meant else document
        for document, meant in zip(documents, hit, strict=True)
    ]
