"""What a bound pod costs end to end: list, decide, bind, hear of it, tell, against a stub server.

Reference: the budget itself, 500 us of the scheduler's CPU for a pod, which is 2 000 bindings a
second and core. The stub is a process of its own and is not counted.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from koordlet.http import client as http
from koordlet.kube import adapter, credentials
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import runner
from tests.bench import gate, pace, stub

_NODES, _PODS = 5000, 5000
#: CPU of a bound pod in microseconds.
BUDGET = 500.0
_WAIT = 0.05


@contextmanager
def server(nodes: int, pods: int) -> Iterator[int]:
    """The port of a stub with so many nodes and pods."""
    words = [sys.executable, "-m", "tests.bench.stub", str(nodes), str(pods)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def kubeconfig(folder: Path, port: int) -> Path:
    """How the stub is reached."""
    config = folder / "kubeconfig"
    where = {"server": f"http://127.0.0.1:{port}"}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": where}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    return config


async def _bound(port: int, folder: Path, pods: int) -> tuple[float, float, int]:
    """CPU and wall seconds from the first decision to the last binding; all POSTs."""
    limits = http.ClientLimits(connections=24, body_bytes=128 << 20)
    source = credentials.CredentialSource(kubeconfig=str(kubeconfig(folder, port)))
    store = adapter.KubeStore(
        credentials.Credentials(source), adapter.RequestTimes(page=500, limits=limits)
    )
    loop = runner.Loop(store, {stub.SCHEDULER: profile.default(stub.SCHEDULER)}, instance="bench")
    working = asyncio.ensure_future(loop.run())
    asking = http.HttpClient(http.HttpEndpoint("127.0.0.1", port))
    while not loop.ready:  # noqa: ASYNC110 -- it tells nobody
        await asyncio.sleep(0)
    cpu, wall = time.process_time(), time.perf_counter()
    while True:
        await asyncio.sleep(_WAIT)
        counts = json.loads((await asking.request("GET", "/stub")).body)
        if counts["bound"] >= pods:
            break
    spent = time.process_time() - cpu, time.perf_counter() - wall
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await store.close()
    asking.close()
    return *spent, int(counts["posts"])


def once(nodes: int = _NODES, pods: int = _PODS) -> tuple[float, float, int]:
    """One cluster, from empty to full."""
    with server(nodes, pods) as port, tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_bound(port, Path(folder), pods))


def binding() -> gate.Ratio:
    """A bound pod, events included."""
    runs = [(once(), pace.work()) for _ in range(2)]
    cpu, wall, posts = min(run for run, _ in runs)
    _, reference = pace.budget(BUDGET, ((run[0], work) for run, work in runs))
    print(f"{_PODS / wall:.0f} bindings a second, {posts / _PODS:.2f} POSTs a pod")
    return gate.Ratio(
        name=f"binding, {_NODES} nodes",
        ours=cpu / _PODS * 1e6,
        reference=reference,
        limit=1.0,
        unit="CPU us a pod",
        against="the budget",
    )


def memory() -> float:
    """The most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    chosen = [int(word) for word in sys.argv[1:]] or [_NODES, _PODS]
    cpu_seconds, wall_seconds, all_posts = once(*chosen)
    print(
        f"{cpu_seconds / chosen[1] * 1e6:.0f} CPU us a pod,"
        f" {chosen[1] / wall_seconds:.0f} a second,"
        f" {all_posts / chosen[1]:.2f} POSTs a pod, {memory():.0f} MB"
    )
