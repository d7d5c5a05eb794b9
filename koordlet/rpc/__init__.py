"""All gRPC: the node feed, its server, its messages. The only room that imports ``grpc``.

Covers: encoding a view, fan-out to watchers, the Unix socket.
Does not cover: what is in a view (``report.view``). ``generate`` makes ``gen``.
"""

import os

# The C core would write to our standard error about every client that speaks no HTTP/2, with what
# that client sent. It reads this when it is loaded, so whichever module loads it comes after.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
