"""``python -m benchmarks.speed NAME``: run one measurement and print its ratios."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks.speed


def main(argv: list[str]) -> int:
    """Hand over to the ``main(argv)`` of the measurement named first."""
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.speed.__path__))
    names = [name for name in names if not name.startswith("_")]
    if not argv or argv[0] not in names:
        print(f"usage: python -m benchmarks.speed {{{','.join(names)}}} [options]", file=sys.stderr)
        return 2
    module = importlib.import_module(f"benchmarks.speed.{argv[0]}")
    return int(module.main(argv[1:]) or 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
