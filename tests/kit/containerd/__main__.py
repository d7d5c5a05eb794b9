"""The command line: ``python -m tests.kit.containerd fetch`` makes ready what the tests need."""

from __future__ import annotations

import argparse
import sys

from tests.kit.containerd import programs


def main() -> int:
    """Do what is asked for; 1 with a sentence where it cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m tests.kit.containerd", description=__doc__)
    parser.add_argument("what", choices=["fetch"], help="fetch, unpack and check the programs")
    parser.parse_args()
    try:
        found = programs.fetch()
    except programs.FetchError as error:
        print(f"containerd: {error}", file=sys.stderr)
        return 1
    print(f"containerd: {found.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
