"""The syntax of label keys and values, as API servers check it.

Covers: keys (also those of annotations, taints and topologies) and values.
Does not cover: selecting by them (``selectors``), objects as a whole (``validation``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST, _LONGEST_PREFIX = 63, 253
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LETTERS = "letters, digits, '-', '_' and '.', the first and last a letter or digit"


def is_subdomain(name: str) -> bool:
    """Whether a name is a DNS subdomain (RFC 1123), as most names of objects are."""
    return len(name) <= _LONGEST_PREFIX and bool(_SUBDOMAIN.match(name))


def is_dns_label(name: str) -> bool:
    """Whether a name is one label of DNS (RFC 1123), as names of containers are."""
    return len(name) <= _LONGEST and "." not in name and bool(_SUBDOMAIN.match(name))


def key_fault(key: str) -> str:
    """What is wrong with a key; empty: nothing."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        return f"the prefix of {key[:100]!r} is not a DNS subdomain"
    if len(name) > _LONGEST or not _NAME.match(name):
        return f"{key[:100]!r} is not a key: at most {_LONGEST} {_LETTERS}"
    return ""


def value_fault(value: str) -> str:
    """What is wrong with a value; empty: nothing, as with the empty value."""
    if value and (len(value) > _LONGEST or not _NAME.match(value)):
        return f"{value[:100]!r} is not a value of a label: at most {_LONGEST} {_LETTERS}"
    return ""


def fault(key: str, values: Iterable[str]) -> str:
    """What is wrong with a key, or else with the first value that is none."""
    return key_fault(key) or next(filter(None, map(value_fault, values)), "")
