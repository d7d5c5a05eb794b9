"""The table of what is served: method and path to a handler.

Covers: looking a handler up, 404, 405. Does not cover: what handlers say (``report.http_api``).

A row whose path ends in ``/*`` serves what has one name more than that.

A handler is a quick, plain function: it takes a value and gives a value, and may be called in the
loop. ``HEAD`` is answered wherever ``GET`` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from koordlet.http import message

#: Asked by whoever restarts us or sends nobody here: they are answered when nobody else is.
PROBES = frozenset({"/livez", "/readyz", "/healthz"})

Handler = Callable[[message.HttpRequest], message.HttpResponse]


class Routes:
    """An immutable table."""

    def __init__(self, rows: Iterable[tuple[str, str, Handler]]) -> None:
        self._rows: dict[str, dict[str, Handler]] = {}
        for method, path, handler in rows:
            methods = self._rows.setdefault(path, {})
            if method in methods:
                raise ValueError(f"two handlers for {method} {path}")
            methods[method] = handler

    def __iter__(self) -> Iterator[str]:
        """The paths, in the order of the table."""
        return iter(self._rows)

    def answer(self, request: message.HttpRequest) -> message.HttpResponse:
        """The handler's response, 404 or 405."""
        above = request.path.rpartition("/")[0]
        methods = self._rows.get(request.path) or self._rows.get(f"{above}/*")
        if methods is None:
            return message.error(
                404,
                "not_found",
                "no such path",
                culprit=request.path[:200],
                fix="GET / lists the paths",
            )
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is not None:
            return handler(request)
        names = {*methods, *(["HEAD"] if "GET" in methods else [])}
        return not_allowed(request, ", ".join(sorted(names)))


def not_allowed(request: message.HttpRequest, allowed: str) -> message.HttpResponse:
    """405, naming what is allowed."""
    return message.error(
        405,
        "method_not_allowed",
        f"{request.method[:40]} is not allowed for this path",
        culprit=request.path[:200],
        fix=f"use one of: {allowed}",
        headers={"allow": allowed},
    )
