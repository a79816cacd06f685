"""`make conformance`: runs both sides in both revisions and prints what became of each scenario."""

import sys
import tempfile
from pathlib import Path
from typing import get_args

from tests.conformance import suite


def main() -> int:
    try:
        suite.install()
    except suite.NotHere as reason:
        print(f"The conformance suite is not here: {reason}", file=sys.stderr)
        return 1
    faults = 0
    for revision in suite.REVISIONS:
        with tempfile.TemporaryDirectory() as folder, suite.served(Path(folder)) as url:
            faults += show("server", revision, suite.server_outcomes(url, revision, Path(folder, "results")))
        with tempfile.TemporaryDirectory() as folder:
            faults += show("client", revision, list(suite.client_outcomes(revision, Path(folder))))
    for leg in get_args(suite.Leg):
        left_out = suite.left_out(leg)
        print(f"\n{leg} · not run · {len(left_out)}")
        for scenario, reason in left_out.items():
            print(f"  not run   {scenario:45} {reason}")
    return 1 if faults else 0


def show(leg: str, revision: str, outcomes: list[suite.Outcome]) -> int:
    """Prints a table; gives how many scenarios are not as expected."""
    verdicts = [one.verdict for one in outcomes]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in get_args(suite.Verdict))
    print(f"\n{leg} · {revision} · {counts}")
    for one in outcomes:
        told = one.fault or one.not_ours
        print(f"  {one.verdict:9} {one.scenario:45} {one.statuses['SUCCESS']} checks  {told}".rstrip())
    return verdicts.count("FAILS")


if __name__ == "__main__":
    sys.exit(main())
