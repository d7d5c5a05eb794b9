"""The manifests of ``deploy/`` as plain data.

Covers: reading them, questions about roles. Does not cover: what they must say (the tests).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from koordlet.kubeapi import kinds

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def documents(name: str) -> list[dict[str, Any]]:
    """All documents of one file."""
    return [document for document in yaml.safe_load_all((DEPLOY / name).read_text()) if document]


def rules(name: str) -> Iterator[dict[str, Any]]:
    """Every rule of every role of a file."""
    for document in documents(name):
        if document["kind"] in {"Role", "ClusterRole"}:
            yield from document["rules"]


def allowed(name: str) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of a file."""
    return {
        (group, resource, verb)
        for rule in rules(name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(kind: kinds.Kind, verbs: str, subresource: str = "") -> set[tuple[str, str, str]]:
    """What a program that does this with a kind must be allowed."""
    plural = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return {(kind.group, plural, verb) for verb in verbs.split()}
