"""All gRPC: the node feed, its server, its messages. The only room that imports ``grpc``.

Covers: encoding a view, fan-out to watchers, the Unix socket.
Does not cover: what is in a view (``report.view``). ``generate`` makes ``gen``.
"""
