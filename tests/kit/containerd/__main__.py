"""The command line: ``python -m tests.kit.containerd fetch`` makes ready what the tests need.

``fetch crun`` fetches one bundle alone.
"""

from __future__ import annotations

import argparse
import sys

from tests.kit import debian
from tests.kit.containerd import programs

#: What the tests of every run need.
ORDINARY = ("containerd", "crun")


def main() -> int:
    """Do what is asked for; 1 with a sentence where it cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m tests.kit.containerd", description=__doc__)
    parser.add_argument("what", choices=["fetch"], help="fetch, unpack and check the programs")
    parser.add_argument("bundles", nargs="*", help=f"of: {', '.join(programs.BUNDLES)}")
    for name in parser.parse_args().bundles or ORDINARY:
        try:
            bundle = programs.fetch(name)
        except debian.FetchError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name}: {bundle.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
