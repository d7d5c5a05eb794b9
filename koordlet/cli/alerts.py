"""``koordlet alerts``: whether a Prometheus has alerts of koordlet that fire, now or for a while.

Covers: asking it again and again, ending at the first alert, with or without TLS and a token;
waiting until agents run what is to be watched.
Does not cover: the rules (``deploy/alerts``), what a rollout does about it (the chart's hook).

Rules:
1. A Prometheus that does not answer counts as an alert: silence proves nothing. One answer that is
   missing between good ones is borne; ``--seconds`` of none is not.
2. The seconds begin when agents run the configurations of ``--pool`` and no agent runs another: a
   kubelet takes up to two minutes to bring a changed ConfigMap.
3. Rules fire after up to 15 minutes. So an alert that is pending when the seconds are over is
   awaited until it fires or is gone; those that begin later are not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

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
#: How long agents may take to run a new configuration, and to be scraped.
_PATIENCE = 300.0
_DIGEST = 64
_RUNNING = "count by (sha256) (koordlet_config_info)"

Alert = dict[str, str]
T = TypeVar("T")


class Alerts(NamedTuple):
    """Alerts of koordlet that matter."""

    firing: list[Alert]
    #: Of those that will fire if they last: labels and beginning.
    pending: frozenset[str]


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
    parser.add_argument(
        "--pool",
        type=_pool,
        action="append",
        default=[],
        metavar="NAME=SHA256",
        help="first wait until agents run this pool's configuration, by the sha256sum of its file,"
        " and no agent runs another (several times; without a name: nodes of no pool, maybe none)",
    )
    parser.add_argument("--ca", metavar="FILE", help="certificates to trust, for https")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="a bearer token to send")
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Watch, and print what fires."""
    if args.pool:
        settle(lambda: absent(args), time.monotonic, time.sleep)
    alerts = watch(lambda: ask(args), args.seconds, time.monotonic, time.sleep)
    lines = [f"{a['severity']:<9} {a['name']}  {a['summary']}" for a in alerts]
    output.show(args.output, {"alerts": alerts}, lines or ["no alert of koordlet fires"])
    return int(bool(alerts))


def settle(
    asked: Callable[[], str], clock: Callable[[], float], pause: Callable[[float], None]
) -> None:
    """Wait until nothing is absent; ``HostError`` says what still is after a while."""
    for late, why in _answers(asked, clock() + _PATIENCE, clock, pause):
        if not why:
            return
        if late:
            fix = f"are its agents ready, and scraped? In Prometheus: {_RUNNING}"
            raise errors.HostError(f"{why} after {_PATIENCE:.0f} s", fix=fix)


def watch(
    asked: Callable[[], Alerts],
    seconds: float,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> list[Alert]:
    """The first alerts that fire within the time; none, if none did."""
    awaited: frozenset[str] | None = None
    for late, alerts in _answers(asked, clock() + seconds, clock, pause):
        if alerts.firing:
            return alerts.firing
        if late:
            awaited = alerts.pending if awaited is None else awaited & alerts.pending
            if not awaited or not seconds:
                break
    return []


def _answers(
    asked: Callable[[], T],
    end: float,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> Iterator[tuple[bool, T]]:
    """Good answers, each with whether the time was over; bears a few that are missing."""
    missed, over = 0, False
    while True:
        late = clock() >= end
        try:
            answer = asked()
        except errors.HostError:
            missed += 1
            if missed > _BORNE or (late and not over):
                raise
        else:
            missed, over = 0, late
            yield late, answer
        left = end - clock()
        pause(min(_STEP, left) if left > 0 else _STEP)


def ask(args: argparse.Namespace) -> Alerts:
    """What fires now, and what is about to."""
    return _answer(args, "alerts", lambda data: _alerts(data["alerts"]))


def absent(args: argparse.Namespace) -> str:
    """What agents run instead of the configurations of the pools; empty where they run those."""

    def counted(data: Any) -> dict[str, int]:
        return {row["metric"]["sha256"]: int(row["value"][1]) for row in data["result"]}

    query = urllib.parse.urlencode({"query": _RUNNING})
    running = _answer(args, f"query?{query}", counted)
    for name, digest in args.pool:
        if name and digest not in running:
            return f"no agent runs the configuration of pool {name}"
    wanted = {digest for _, digest in args.pool}
    others = sum(number for digest, number in running.items() if digest not in wanted)
    if others:
        return f"{others} of {sum(running.values())} agents run another configuration"
    return "" if running else "no agent says what it runs"


def _answer(args: argparse.Namespace, path: str, read: Callable[[Any], T]) -> T:
    """What Prometheus answers, as it is read."""
    from http import client  # noqa: PLC0415 -- 16 ms with ssl and email that `--help` does without

    parts = _address(args.prometheus)
    headers = _authorization(args.token_file)
    connection = _connection(parts, args.ca)
    try:
        try:
            connection.request("GET", f"{parts.path.rstrip('/')}/api/v1/{path}", headers=headers)
            answer = connection.getresponse()
            why = "" if answer.status == client.OK else f"{answer.status} {answer.reason}"
            document: Any = None if why else json.loads(answer.read(_MOST))
        finally:
            connection.close()
        if not why:
            return read(document["data"])
    except (
        *(OSError, client.HTTPException, ValueError, KeyError, TypeError),
        *(AttributeError, RecursionError),
    ) as error:
        other = f"not as Prometheus does: {error!r:.200}"
        why = (error.strerror or str(error)) if isinstance(error, OSError) else other
    raise errors.HostError(
        f"no Prometheus answers: {why}",
        culprit=args.prometheus,
        fix=f"does {args.prometheus.rstrip('/')}/api/v1/{path} answer?",
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
        why = getattr(error, "strerror", None) or error
        raise errors.ConfigError(
            f"no token can be read: {why}", culprit=str(path), fix="name a file with one line"
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


def _alerts(listed: list[Any]) -> Alerts:
    firing, pending = [], []
    for alert in listed:
        labels = alert["labels"]
        name, severity = str(labels["alertname"]), str(labels.get("severity", "warning"))
        if not name.startswith(_PREFIX) or severity not in _GRAVE:
            continue
        summary = str(alert.get("annotations", {}).get("summary", ""))
        if alert["state"] == "firing":
            firing.append({"name": name, "severity": severity, "summary": summary})
        elif alert["state"] == "pending":
            pending.append(f"{sorted(labels.items())} {alert.get('activeAt')}")
    return Alerts(firing, frozenset(pending))


def _pool(text: str) -> tuple[str, str]:
    """A pool and what its agents run."""
    name, _, digest = text.rpartition("=")
    if len(digest) != _DIGEST or set(digest) - set("0123456789abcdef") or "=" not in text:
        raise argparse.ArgumentTypeError(f"a pool and a SHA-256, canary=0a1b..., not {text!r:.60}")
    return name, digest
