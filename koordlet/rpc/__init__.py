"""All gRPC: the node feed, its server, its messages. The only room that imports ``grpc``.

Covers: encoding a view, fan-out to watchers, the Unix socket.
Does not cover: what is in a view (``report.view``). ``tools.proto.generate`` makes ``gen``.
"""

import os

# The C core would write to our standard error about every client that speaks no HTTP/2, with what
# that client sent. It reads this when it is loaded, so whichever module loads it comes after.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Its newer listener hands each message from its poller through a pool of threads to our queue, five
# wake-ups for a heartbeat; the one before it polls in the thread that waits for the queue: two. In
# a version that has no such choice any more this does nothing. An operator's own setting stays.
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener")
