"""All benchmarks, or the named ones: python -m bench [--quick] [webhook] [turns] …"""

import argparse
import asyncio
import importlib
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import uvloop

from bench.measure import Plan, Row, print_header, print_rows
from bench.process import Release

GROUPS = (
    "webhook",
    "turns",
    "latency",
    "footprint",
    "growth",
    "parked",
    "skills",
    "servers",
    "strangers",
    "recall",
    "workers",
    "console",
)
GROUP_SECONDS = 900.0


async def run(names: list[str], plan: Plan) -> None:
    print_header()
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release = Release(folder / "release")
        for group in names:
            async with asyncio.timeout(GROUP_SECONDS):
                rows: list[Row] = await importlib.import_module(f"bench.{group}").rows(
                    folder / group, release, plan
                )
            print_rows(rows)
            missed += sum(row.met is False for row in rows)
    print(f"\n{missed} goals missed" if missed else "\nevery goal met", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="|".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="a short form, for a first look")
    parser.add_argument(
        "--frameworks",
        metavar="PYTHON",
        default=sys.executable,
        help="the interpreter of an environment with the agent frameworks (the extra bench-loops)",
    )
    arguments = parser.parse_args()
    unknown = set(arguments.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    plan = Plan(frameworks=arguments.frameworks)
    if arguments.quick:
        plan = replace(plan, rounds=2, share=0.2)
    uvloop.run(run([name for name in GROUPS if not arguments.groups or name in arguments.groups], plan))


if __name__ == "__main__":
    main()
