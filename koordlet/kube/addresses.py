"""Paths and queries of the API server.

Covers: the path of a kind and of an object, request targets, selectors as query words.
Does not cover: who the server is (``credentials``), and asking it (``adapter``).
"""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Mapping

from koordlet.kubeapi import kinds, objects, refusals, selectors

#: What stands for itself in a path.
_PLAIN = re.compile(r"[-._~0-9A-Za-z]+")


def collection(kind: kinds.Kind, namespace: str) -> str:
    """The path of a kind's objects."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{_quoted(namespace)}" if kind.namespaced and namespace else ""
    return f"{root}{where}/{kind.plural}"


def path(ref: objects.Ref) -> str:
    """The path of one object."""
    return f"{collection(ref.kind, ref.namespace)}/{_quoted(ref.name)}"


def _quoted(name: str) -> str:
    # A name with a slash or a dot alone would be another path.
    if name in {"", ".", ".."}:
        raise refusals.Malformed(f"not a name: {name!r}")
    return name if _PLAIN.fullmatch(name) else urllib.parse.quote(name, safe="")


def target(prefix: str, where: str, query: Mapping[str, str]) -> str:
    """Target of a request line; ``prefix`` is the path of a proxy."""
    return f"{prefix}{where}?{_words(tuple(query.items()))}" if query else f"{prefix}{where}"


@functools.lru_cache(maxsize=64)
def _words(query: tuple[tuple[str, str], ...]) -> str:
    """A query; nearly all writes have the same."""
    return urllib.parse.urlencode(query)


def selected(selector: selectors.Selector) -> dict[str, str]:
    """A selector as query words."""
    both = {"labelSelector": selector.labels, "fieldSelector": selector.fields}
    return {name: text for name, text in both.items() if text}
