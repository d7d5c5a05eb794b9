"""``koordlet alerts``: whether a Prometheus has alerts of koordlet that fire, now or for a while.

Covers: asking it again and again, ending at the first alert, with or without TLS and a token.
Does not cover: the rules (``deploy/alerts``), what a rollout does about it (the chart's hook).

A Prometheus that does not answer counts as an alert: silence proves nothing. One answer that is
missing between good ones is borne; ``--seconds`` of none is not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from koordlet.cli import options, output
from koordlet.model import errors

EXAMPLES = """\
koordlet alerts --prometheus http://prometheus.monitoring:9090
koordlet alerts --prometheus http://prometheus.monitoring:9090 --seconds 300
koordlet alerts --prometheus https://prometheus:9090 --ca ca.crt --token-file token -o json
"""

#: How every alert of deploy/alerts is named.
_PREFIX = "Koordlet"
#: ``info`` is for people, later.
_GRAVE = ("critical", "warning")
_STEP = 5.0
_TIMEOUT = 10.0
_MOST = 16 << 20
#: Answers in a row that may be missing.
_BORNE = 3

Alert = dict[str, str]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--prometheus", required=True, metavar="URL", help="where it answers")
    parser.add_argument(
        "--seconds",
        type=options.seconds,
        default=0.0,
        metavar="N",
        help="watch for so long (default: look once)",
    )
    parser.add_argument("--ca", metavar="FILE", help="certificates to trust, for https")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="a bearer token to send")
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Watch, and print what fires."""
    alerts = watch(lambda: ask(args), args.seconds, time.monotonic, time.sleep)
    lines = [f"{a['severity']:<9} {a['name']}  {a['summary']}" for a in alerts]
    output.show(args.output, {"alerts": alerts}, lines or ["no alert of koordlet fires"])
    return int(bool(alerts))


def watch(
    asked: Callable[[], list[Alert]],
    seconds: float,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> list[Alert]:
    """The first alerts that fire within the time; none, if none did."""
    end, missed = clock() + seconds, 0
    while True:
        try:
            alerts, missed = asked(), 0
        except errors.HostError:
            alerts, missed = [], missed + 1
            if missed > _BORNE or clock() >= end:
                raise
        if alerts or clock() >= end:
            return alerts
        pause(min(_STEP, max(0.0, end - clock())))


def ask(args: argparse.Namespace) -> list[Alert]:
    """What fires now."""
    from http import client  # noqa: PLC0415 -- 16 ms with ssl and email that `--help` does without

    parts = _address(args.prometheus)
    headers = _authorization(args.token_file)
    connection = _connection(parts, args.ca)
    try:
        try:
            connection.request("GET", f"{parts.path.rstrip('/')}/api/v1/alerts", headers=headers)
            answer = connection.getresponse()
            why = "" if answer.status == client.OK else f"{answer.status} {answer.reason}"
            document: Any = None if why else json.loads(answer.read(_MOST))
        finally:
            connection.close()
        if not why:
            return list(_firing(document["data"]["alerts"]))
    except (
        *(OSError, client.HTTPException, ValueError, KeyError, TypeError),
        *(AttributeError, RecursionError),
    ) as error:
        why = (
            f"{error}" if isinstance(error, OSError) else f"not as Prometheus does: {error!r:.200}"
        )
    raise errors.HostError(
        f"no Prometheus answers: {why}",
        culprit=args.prometheus,
        fix=f"does {args.prometheus.rstrip('/')}/api/v1/alerts list alerts?",
    )


def _address(text: str) -> urllib.parse.SplitResult:
    """The parts of an address; its port is a number where it has one."""
    with contextlib.suppress(ValueError):
        parts = urllib.parse.urlsplit(text)
        known = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
        if known and parts.port != 0:
            return parts
    raise errors.UsageError(
        "no address of a server", culprit="--prometheus", fix="such as http://prometheus:9090"
    )


def _authorization(path: Path | None) -> dict[str, str]:
    """The header with the token of a file, which is read each time: tokens are renewed."""
    if path is None:
        return {}
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise errors.ConfigError(
            f"no token can be read: {error}", culprit=str(path), fix="name a file with one line"
        ) from None
    if not token.isprintable() or " " in token:
        raise errors.ConfigError(
            "holds more than a token", culprit=str(path), fix="name a file with one line"
        )
    return {"Authorization": f"Bearer {token}"} if token else {}


def _connection(parts: urllib.parse.SplitResult, authority: str | None) -> Any:
    from http import client  # noqa: PLC0415 -- as above

    if parts.scheme == "http":
        return client.HTTPConnection(parts.netloc, timeout=_TIMEOUT)
    import ssl  # noqa: PLC0415 -- of no use without https

    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:
        raise errors.UsageError(
            f"no certificates: {error}", culprit=str(authority), fix="name a PEM file with --ca"
        ) from None
    return client.HTTPSConnection(parts.netloc, timeout=_TIMEOUT, context=context)


def _firing(alerts: list[Any]) -> Iterator[Alert]:
    for alert in alerts:
        labels = alert["labels"]
        name, severity = str(labels["alertname"]), str(labels.get("severity", "warning"))
        if alert["state"] == "firing" and name.startswith(_PREFIX) and severity in _GRAVE:
            summary = str(alert.get("annotations", {}).get("summary", ""))
            yield {"name": name, "severity": severity, "summary": summary}
