"""The annotation ``koordlet.io/match``: which processes a standalone workload is.

Covers: its two spellings. Does not cover: finding the cgroup (``declared``).

``{"unit": "nginx.service"}`` or ``{"cgroup": "web/nginx"}``, or shorter ``unit=nginx.service``.
Only objects of this machine's operator may say it: a pod of a cluster that names somebody else's
cgroup would be given power over it.
"""

from __future__ import annotations

import json

from koordlet.model import cgroup, printable, slices

ANNOTATION = "koordlet.io/match"
_HOW = {"unit": slices.is_unit, "cgroup": cgroup.is_plain}
_RIGHT = {
    "unit": 'the full name of a unit, such as "nginx.service"',
    "cgroup": 'a path relative to the cgroup root, such as "web/nginx"',
}


def parse(text: str) -> str:
    """Parse into ``Pod.match``; empty for no match, ``ValueError`` for an invalid one."""
    if not text.strip():
        return ""
    how, sign, what = text.strip().partition("=")
    if sign and how in _HOW and what:
        return _match(how, what)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{ANNOTATION}: neither unit=NAME, cgroup=PATH nor JSON: {str(error)[:80]}"
        raise ValueError(msg) from error
    given = [(key, body.get(key)) for key in _HOW] if isinstance(body, dict) else []
    criteria = [(key, value) for key, value in given if isinstance(value, str) and value]
    if len(criteria) != 1:
        raise ValueError(f"{ANNOTATION}: neither one unit nor one cgroup")
    [(how, what)] = criteria
    return _match(how, what)


def _match(how: str, what: str) -> str:
    if not _HOW[how](what):
        shown = printable.escaped(what[:80])
        raise ValueError(f'{ANNOTATION}: "{shown}" is not {_RIGHT[how]}')
    return f"{how}={what}"
