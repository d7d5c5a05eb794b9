"""The API server: transport and authentication of the ``kubernetes`` package, our own list/watch.

Covers: the adapter ``kube.adapter`` of the port ``kubeapi.objects``. Does not cover: keeping a kind
up to date (``kubeapi.informer``), what the objects mean.

The package brings 25 MB and 150 ms, so that only an agent with a cluster imports this room, after
its first verified tick. Its typed models (60 MB more, and they drop fields that they do not know)
and its watches (no bookmarks, no backoff) are never used.
"""
