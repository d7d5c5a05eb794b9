"""``python -m tests.kit.kubelet``: a kubelet as a process; prints its port when ready."""

from __future__ import annotations

import argparse
import asyncio
import ssl
import sys
from pathlib import Path

from tests.kit.kubelet import server


async def _serve(args: argparse.Namespace) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(args.cert, args.key)
    kubelet = server.Kubelet(context, token=args.token, folder=args.folder)
    await kubelet.start()
    sys.stdout.write(f"{kubelet.port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cert", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--token", default=server.TOKEN)
    parser.add_argument("--folder", type=Path, default=server.FIXTURES)
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
