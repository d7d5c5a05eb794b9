"""Pods in quotas against the same pods in none, in one run.

* admission: 2 000 pods in 1 000 quotas four levels deep, which want more than there is, are decided
  and bound, against the same pods where no quota exists;
* large: a pod comes, its quota's runtime is asked for, it gets a node, and goes, among 10 000
  quotas and 200 000 pods, against the same among a tenth of both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence

from koordlet.kubeapi import elastic_quotas
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.quotas.book import QuotaBook
from tests.bench import gate
from tests.kit import clusters, quotas
from tests.kit.quotas import KEY

ADMISSION, LARGE = 1.1, 2.0
#: What is held: on one host the same code gives 1.05 to 1.17; the budget is the goal.
ADMISSION_LIMIT = 1.2
_NODES, _PODS, _SLICE, _FAN = 2000, 2000, 100, 10
_TURNS = 2000


def _tree(levels: int, fan: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Names of leaves, and every quota with its parent: so many levels below the root."""
    above, every = [""], list[tuple[str, str]]()
    for level in range(levels):
        number = fan if level else 1
        several = [
            (f"{name}-{place}" if name else f"q{place}", name)
            for name in above
            for place in range(number)
        ]
        every += several
        above = [name for name, _ in several]
    return above, every


def _quotas(every: list[tuple[str, str]], cpu: int) -> list[quotas.Body]:
    most = {"cpu": cpu, "memory": "100Ti"}
    return [
        quotas.quota(name, {"cpu": 0, "memory": 0}, most, parent=parent, is_parent=True)
        for name, parent in every
    ]


def _decided(cluster: Sequence[nodes.Node], *, bounded: bool) -> Iterator[float]:
    """CPU time of each slice of the pods: decided and bound."""
    core = Core({"default-scheduler": profile.default("default-scheduler")})
    for node in cluster:
        core.node(None, node, 0.0)
    leaves, every = _tree(4, _FAN)
    for body in _quotas(every, 100_000) if bounded else ():
        core.quotas.put_quota(elastic_quotas.elastic_quota(body))
    for number in range(_PODS):
        labels = {f"{KEY}name": leaves[number % len(leaves)]}
        body = clusters.pod(f"p{number}", cpu="1", memory="1Gi", labels=labels)
        core.pod(None, core.decoder.decode(body, number), 0.0)
    core.quotas.settle(0.0)
    # What is there before the first pod is tried is not a pod's cost: each parent's division, which
    # holds for all its pods, and what the collector walks when it happens to come.
    for leaf in leaves if bounded else ():
        core.quotas.book.limit(core.quotas.book.nodes[leaf])
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    for _ in range(_PODS // _SLICE):
        start = time.process_time()
        bound = 0
        for _ in range(_SLICE):
            outcome = core.step(0.0)
            if isinstance(outcome, Bind):
                bound += 1
                core.bound(outcome.pod, 0.0)
        spent = time.process_time() - start
        if bound != _SLICE:
            raise ValueError(f"{bound} of {_SLICE} pods were bound")
        yield spent


def turns(fan: int, pods: int) -> Callable[[], float]:
    """Quotas and pods, made once; each call measures pods that come, are asked about, and go."""
    book, decoder = QuotaBook(), Decoder({})
    leaves, every = _tree(3, fan)
    for body in _quotas(every, 10):
        book.put_quota(elastic_quotas.elastic_quota(body))
    book.put_node(None, nodes.decode(clusters.node("n", cpu="40")))
    for number in range(pods):
        labels = {f"{KEY}name": leaves[number % len(leaves)]}
        book.put(decoder.decode(clusters.pod(f"p{number}", cpu="1", labels=labels, on="n"), number))
    book.settle()

    def measure() -> float:
        guests = [
            decoder.decode(
                clusters.pod(
                    f"g{turn}", cpu="1", labels={f"{KEY}name": leaves[turn % len(leaves)]}
                ),
                0,
            )
            for turn in range(_TURNS)
        ]
        gc.collect()
        start = time.process_time()
        for guest in guests:
            book.put(guest)
            node = book.of(guest.pod_class)
            if node is not None:
                book.limit(node)
            guest.node = "n"
            book.put(guest)
            book.drop(guest.key)
        return (time.process_time() - start) / _TURNS

    return measure


def admission() -> gate.Ratio:
    """What quotas add to a pod's way through the loop."""
    cluster = [nodes.decode(clusters.node(f"n{number}", cpu="8")) for number in range(_NODES)]
    ours, reference = gate.sliced(
        lambda: _decided(cluster, bounded=True), lambda: _decided(cluster, bounded=False)
    )
    return gate.Ratio(
        name=f"a pod in one of 1 111 quotas, {_NODES} nodes",
        ours=ours / _PODS * 1e6,
        reference=reference / _PODS * 1e6,
        limit=ADMISSION_LIMIT,
        goal=ADMISSION,
        unit="CPU us",
        against="the same pod without quotas",
    )


def large() -> gate.Ratio:
    """What ten times the quotas and pods add to a pod's turn."""
    ours, reference = gate.interleaved(turns(100, 200_000), turns(32, 20_000))
    return gate.Ratio(
        name="a pod's turn among 10 101 quotas and 200 000 pods",
        ours=ours * 1e6,
        reference=reference * 1e6,
        limit=LARGE,
        unit="CPU us",
        against="among a tenth of both",
    )
