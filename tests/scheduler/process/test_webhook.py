"""The webhook as a process: it answers once all is listed, tells faults, and ends when told to."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from koordlet import cli
from koordlet.kubeapi import kinds
from tests.kit import schedulers
from tests.kit.apiserver import pki

Body = dict[str, Any]
PROFILES = kinds.CLUSTER_COLOCATION_PROFILES
_LISTENS = re.compile(rb"https://127\.0\.0\.1:(\d+)/mutate")


class Webhook:
    """One that runs."""

    def __init__(self, process: asyncio.subprocess.Process, authority: Path) -> None:
        self.process, self._tls = process, ssl.create_default_context(cafile=authority)
        self.address, self.log = "", b""

    async def until_logged(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        """Read its log up to a line."""
        assert self.process.stderr is not None
        while True:
            line = await self.process.stderr.readline()
            assert line, self.log.decode()
            self.log += line
            if match := pattern.search(line):
                return match

    async def ask(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and answer."""
        return await asyncio.to_thread(self._ask, path, body)

    def _ask(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        request = urllib.request.Request(f"{self.address}{path}", body)  # noqa: S310 - its own
        try:
            with urllib.request.urlopen(request, timeout=20, context=self._tls) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextlib.asynccontextmanager
async def running(world: schedulers.World, ram: Path, **more: str) -> AsyncGenerator[Webhook]:
    """The command, beside a cluster; ``more``: of its environment."""
    assert world.serving is not None
    certificate, key = pki.Authority(ram, "webhook-ca").sign("webhook")
    folder = ram / "tls"
    folder.mkdir()
    certificate.rename(folder / "tls.crt")
    key.rename(folder / "tls.key")
    words = ["webhook", "--tls", str(folder), "--listen", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "koordlet", *words),
        *("--kubeconfig", str(world.serving.kubeconfig(ram / "config"))),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **more},
    )
    webhook = Webhook(process, ram / "webhook-ca.crt")
    try:
        port = (await webhook.until_logged(_LISTENS))[1].decode()
        webhook.address = f"https://127.0.0.1:{port}"
        yield webhook
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0, webhook.log.decode()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def review(pod: object) -> bytes:
    """What an API server sends of a new pod."""
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {"uid": "u", "operation": "CREATE", "resource": resource, "namespace": "jobs"}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**body, "request": {**request, "object": pod}}).encode()


async def test_a_pod_of_a_selected_namespace_is_changed_and_faults_are_told(ram: Path) -> None:
    """From what the API server has; whatever is no review is refused, and the next one answered."""
    async with schedulers.world(ram, over_http=True, custom=(PROFILES,)) as world:
        await world.store.create(
            kinds.NAMESPACES, {"metadata": {"name": "jobs", "labels": {"team": "a"}}}
        )
        batch = {"metadata": {"name": "koord-batch"}, "value": 5500}
        await world.store.create(kinds.PRIORITY_CLASSES, batch)
        for name, spec in (
            ("a", {"namespaceSelector": {"matchLabels": {"team": "a"}}, "qosClass": "BE",
                   "priorityClassName": "koord-batch"}),
            ("b", {"namespaceSelector": {"matchLabels": {"team": "b"}}, "labels": {"b": "b"}}),
            ("c", {"probability": "200%"}),
        ):  # fmt: skip
            await world.store.create(PROFILES, {"metadata": {"name": name}, "spec": spec})
        async with running(world, ram) as webhook:
            await webhook.until_logged(re.compile(rb"webhook\.ready"))
            assert b"colocation.profile_unread" in webhook.log
            assert await webhook.ask("/readyz") == (200, b"ok\n")
            container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}
            pod: Body = {"metadata": {"name": "x"}, "spec": {"containers": [container]}}

            status, answer = await webhook.ask("/mutate", review(pod))
            response = json.loads(answer)["response"]
            patch = {
                operation["path"]: operation["value"]
                for operation in json.loads(base64.b64decode(response["patch"]))
            }
            assert (status, response["allowed"]) == (200, True)
            assert patch["/metadata/labels"] == {"koordinator.sh/qosClass": "BE"}
            assert patch["/spec/priority"] == 5500
            [warning] = response["warnings"]
            assert "ClusterColocationProfile c is left out: spec.probability" in warning

            assert (await webhook.ask("/mutate", b"{"))[0] == 400
            assert (await webhook.ask("/mutate", b"[" * 100_000))[0] == 400
            for odd in (None, 3, {"spec": 3}, {"metadata": {"labels": [1]}, "spec": []}):
                status, answer = await webhook.ask("/mutate", review(odd))
                assert (status, json.loads(answer)["response"]["allowed"]) == (200, True)
            assert (await webhook.ask("/mutate"))[0] == 405

            status, text = await webhook.ask("/metrics")
            assert [line for line in text.decode().splitlines() if line[0] != "#"] == [
                'koordlet_webhook_reviews_total{result="changed"} 3',
                'koordlet_webhook_reviews_total{result="malformed"} 2',
                'koordlet_webhook_reviews_total{result="unchanged"} 2',
                "koordlet_webhook_faults_total 3",
                "koordlet_webhook_profiles 3",
            ]


async def test_without_the_definition_it_is_not_ready_and_says_why(ram: Path) -> None:
    """Whoever asks is refused, and makes the pod as it is."""
    async with (
        schedulers.world(ram, over_http=True) as world,
        running(world, ram) as webhook,
    ):
        assert (await webhook.ask("/livez"))[0] == 200
        assert (await webhook.ask("/readyz"))[0] == 503
        assert (await webhook.ask("/mutate", review({})))[0] == 503


async def test_in_a_pod_it_answers_on_after_it_was_told_to_stop(ram: Path) -> None:
    """Services send it requests until they have heard of its end."""
    async with (
        schedulers.world(ram, over_http=True, custom=(PROFILES,)) as world,
        running(world, ram, KUBERNETES_SERVICE_HOST="10.0.0.1") as webhook,
    ):
        await webhook.until_logged(re.compile(rb"webhook\.ready"))
        webhook.process.send_signal(signal.SIGTERM)
        await webhook.until_logged(re.compile(rb"webhook\.stopping"))
        assert (await webhook.ask("/mutate", review({})))[0] == 200


def test_outside_of_a_cluster_it_names_what_it_needs(capsys: Any) -> None:
    """A usage error, not a traceback."""
    assert cli.main(["webhook", "--tls", "/nowhere"]) == 2
    assert "--kubeconfig" in capsys.readouterr().err
    assert cli.main(["webhook", "--tls", "/nowhere", "--kubeconfig", "/nowhere"]) == 1
    assert "/nowhere/tls.crt" in (err := capsys.readouterr().err)
    assert "(set --tls" in err
