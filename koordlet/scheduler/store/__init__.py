"""Objects in one local file: the SQLite adapter of the port ``kubeapi.objects``.

Covers: the file, what an API server does with an object when it is written, watches, binding and
eviction. Does not cover: what the objects mean; HTTP. SQL stands in this room and nowhere else.
"""
