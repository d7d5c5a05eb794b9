"""A machine in memory that answers as the kernel does.

``Machine(...)`` builds one and gives a ``KernelHost``: the port ``HostRoot`` with everything a test
needs beside it. Its answers are proved against recordings of real kernels (``fixtures/kernel``).
"""

from tests.kit.kernel.host import Call, KernelHost
from tests.kit.kernel.machine import Machine

__all__ = ["Call", "KernelHost", "Machine"]
