"""A module that waits is executed once, whole, by its first use, whichever thread comes first."""

from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import sys, threading
from koordlet import late_import
late_import.install()
import asyncio, hashlib, ssl
"""


def _run(program: str) -> str:
    # A process of its own: this one has executed ssl long ago.
    words = [sys.executable, "-c", f"{_PROGRAM}{program}"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_an_event_loop_that_serves_a_socket_executes_no_tls() -> None:
    """Whoever executes _ssl or _hashlib has libcrypto in its memory."""
    program = """
import os, socket, tempfile
def ask(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.send(b"answer\\n")
        return client.makefile().readline()
async def serve(path):
    async def echo(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    async with await asyncio.start_unix_server(echo, path):
        return await asyncio.to_thread(ask, path)
with tempfile.TemporaryDirectory() as directory:
    print(asyncio.run(serve(os.path.join(directory, "s"))).strip())
print(sorted(late_import.pending()), "_ssl" in sys.modules, "_hashlib" in sys.modules)
"""

    answer, modules = _run(program).splitlines()

    assert answer == "answer"
    waiting = ["asyncio.sslproto", "bz2", "hashlib", "inspect", "lzma", "ssl", "tokenize"]
    assert modules == f"{waiting} False False"


def test_a_connection_that_was_accepted_executes_no_tls() -> None:
    """While ssl waits, no socket is one of its; whoever else asks gets the real class."""
    program = """
import socket
async def connect():
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, ours)
    theirs.close()
asyncio.run(connect())
print("_ssl" in sys.modules)
from ssl import SSLSocket
print(SSLSocket is ssl.SSLSocket, issubclass(SSLSocket, socket.socket), "_ssl" in sys.modules)
"""

    assert _run(program).splitlines() == ["False", "True True True"]


def test_digests_map_no_libcrypto() -> None:
    """The interpreter's own functions say the same; with OpenSSL already there, hashlib has its."""
    digests = """
words = hashlib.blake2b(b"a", digest_size=4).hexdigest(), hashlib.sha256(b"a").hexdigest()[:8]
print(*words, hashlib.new("md5", b"a", usedforsecurity=False).hexdigest()[:8])
print("_hashlib" in sys.modules, hasattr(hashlib, "scrypt"))
"""
    ours, its = (_run(f"{before}{digests}").splitlines() for before in ("", "import _hashlib"))

    assert ours[0] == its[0]
    assert (ours[1], its[1]) == ("False False", "True True")


def test_messages_in_python_wait_until_they_are_the_ones_in_use() -> None:
    """Where the implementation in C is there, a message is made, sent and read without them."""
    program = """
from koordlet.rpc.gen import feed_pb2
read = feed_pb2.Window.FromString(feed_pb2.Window(seconds=7).SerializeToString())
print(read.seconds, "google.protobuf.internal.python_message" in late_import.pending())
"""
    waits = {"upb": "True", "python": "False"}
    for kind, wanted in waits.items():
        chosen = f"import os; os.environ['PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION'] = '{kind}'"

        assert _run(f"{chosen}{program}").split() == ["7", wanted]


def test_first_attribute_executes_the_module() -> None:
    """Everything is there afterwards, in the module that others have already imported."""
    program = """
from asyncio import base_events
print(base_events.ssl is ssl, isinstance(ssl.create_default_context(), ssl.SSLContext))
print(base_events.sslproto.SSLProtocol.__mro__[1].__name__, hashlib.sha256(b"").hexdigest()[:8])
print(late_import.pending().isdisjoint({"asyncio.sslproto", "hashlib", "ssl"}))
"""

    assert _run(program).splitlines() == ["True True", "BufferedProtocol e3b0c442", "True"]


def test_absent_attribute_is_an_attribute_error_that_names_the_module() -> None:
    """Also names of the import system: who looks through sys.modules executes nothing."""
    program = """
print(hasattr(ssl, "__path__"), "ssl" in late_import.pending())
try:
    ssl.no_such_name
except AttributeError as error:
    print(error)
"""

    assert _run(program).splitlines() == [
        "False True",
        "module 'ssl' has no attribute 'no_such_name'",
    ]


def test_a_handler_of_a_signal_is_told_from_a_coroutine_by_its_code() -> None:
    """The inspect module says the same of what wraps a function; it is executed for that alone."""
    program = """
import functools, signal
class Life:
    def stop(self): loop.stop()
    async def never(self): "No function that a loop calls."
def hang_up(loop, handler):
    try:
        loop.add_signal_handler(signal.SIGHUP, handler)
    except TypeError as error:
        print(error, "inspect" in late_import.pending())
loop, life = asyncio.new_event_loop(), Life()
hang_up(loop, life.never)
hang_up(loop, life.stop)
signal.raise_signal(signal.SIGHUP)
loop.run_forever()
print("stopped", "inspect" in late_import.pending())
hang_up(loop, functools.partial(life.never))
loop.close()
"""
    refused = "coroutines cannot be used with add_signal_handler()"

    assert _run(program).splitlines() == [f"{refused} True", "stopped True", f"{refused} False"]


def test_uuid_asks_for_the_system_and_executes_no_platform() -> None:
    """Whoever else asks gets the same answer from the module itself."""
    program = """
import uuid
print(uuid._platform_system, "platform" in late_import.pending())
import platform
print(platform.system(), "platform" in late_import.pending())
"""

    first, second = _run(program).splitlines()

    assert first.removesuffix(" True") == second.removesuffix(" False") == os.uname().sysname


def test_threads_that_come_together_all_find_the_whole_module() -> None:
    """One executes it, the others wait."""
    program = """
at = threading.Barrier(8)
seen = []
def use():
    at.wait()
    seen.append(ssl.get_server_certificate.__module__)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(seen)
"""

    assert _run(program).strip() == str(["ssl"] * 8)


def test_execution_that_failed_is_made_again_at_the_next_use() -> None:
    """A module is not left in half: each use says why, until it succeeds."""
    program = """
sys.modules["_ssl"] = None
for _ in range(2):
    try:
        ssl.SSLContext
    except ImportError as error:
        print(error)
del sys.modules["_ssl"]
print(ssl.SSLContext.__name__, "ssl" in late_import.pending())
"""

    halted = "import of _ssl halted; None in sys.modules"
    assert _run(program).splitlines() == [halted, halted, "SSLContext False"]


def test_own_series_execute_no_server_no_tls_and_no_mail() -> None:
    """A scrape takes the collector of prometheus_client, not what its package gathers."""
    program = """
from koordlet.report import metrics
own = metrics.ProcessMetrics()
print(b"process_cpu_seconds_total " in own.render(metrics.TEXT))
print(*[name for name in ("email", "http.server", "wsgiref", "_ssl") if name in sys.modules])
import prometheus_client
print(prometheus_client.CollectorRegistry.__name__, "http.server" in sys.modules)
"""

    assert _run(program).splitlines() == ["True", "", "CollectorRegistry True"]
