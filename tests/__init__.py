"""Tests of koordlet; folders mirror those of the package.

The room of gRPC comes before anything that loads ``grpc`` by itself, as in the product: it says how
the C core is loaded, and a test or a measurement that came first would be one of another core.
"""

import koordlet.rpc  # noqa: F401 -- for what it sets
