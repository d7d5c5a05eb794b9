"""What all tests share: how hypothesis searches, coroutines, a directory that costs no disk.

An example's wall time says how busy the machine is, not whether the code is right, so there are no
deadlines: what must be fast is a benchmark. A failure prints how to repeat it; the seed at the top
of a run repeats all of it (``--hypothesis-seed``).
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.kit import deadline

# The same examples each time: an ordinary run never fails by chance; the soak is random.
hypothesis.settings.register_profile("ordinary", deadline=None, print_blob=True, derandomize=True)
#: ``make soak`` searches with it: the same properties, a hundred times the examples.
hypothesis.settings.register_profile("soak", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile("ordinary")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed here, so that it can be told whatever happens."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(32))


def pytest_report_header(config: pytest.Config) -> str:
    """What to type to run the same search again."""
    return f"hypothesis: --hypothesis-seed={config.option.hypothesis_seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own, within a deadline."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    fixtures = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**fixtures), 2 * deadline.PATIENCE))
    return True


@pytest.fixture
def ram(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: what syncs to disk a thousand times needs it.

    Its path is short, as that of a socket must be.
    """
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="koordlet-test-", dir=memory) as name:
        yield Path(name)
