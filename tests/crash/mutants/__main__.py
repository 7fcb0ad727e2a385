"""The mutation check: `python -m tests.crash.mutants [--random N] [--seed S] [NAME …]`.

Without names it runs every mutant of the catalogue; with `--random N` it runs N random ones instead.
Exits 1 when a mutant of the catalogue survives, 2 when a patch no longer applies.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.crash.mutants.catalogue import mutants, suites_for
from tests.crash.mutants.patches import (
    Mutant,
    PatchError,
    Result,
    Verdict,
    check_applies,
    copied_source,
    run,
    run_suites,
)
from tests.crash.mutants.random_mutants import draw


def main() -> int:
    arguments = _arguments()
    try:
        chosen = _chosen(arguments)
    except PatchError as error:
        print(error, file=sys.stderr)
        return 2
    needed = arguments.suites or sorted({suite for mutant in chosen for suite in suites_for(mutant)})
    with copied_source() as unchanged:
        verdict, failure = run_suites(unchanged, needed)
    if verdict is not Verdict.SURVIVED:
        print(f"the suites fail without any mutation: {failure}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = [_report(result) for result in pool.map(lambda mutant: _run(mutant, arguments.suites), chosen)]
    return _summary(results, is_catalogue=not arguments.random)


def _run(mutant: Mutant, suites: list[str] | None) -> Result:
    return run(mutant, suites or suites_for(mutant))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants of the catalogue; none: all")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random mutants instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--suites", nargs="+", help="pytest paths to run instead of the default ones")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace) -> list[Mutant]:
    if arguments.random:
        return draw(arguments.random, seed=arguments.seed)
    catalogue = mutants()
    for mutant in catalogue:
        check_applies(mutant)
    unknown = set(arguments.names) - {mutant.name for mutant in catalogue}
    if unknown:
        raise PatchError(f"no such mutant: {', '.join(sorted(unknown))}")
    return [mutant for mutant in catalogue if not arguments.names or mutant.name in arguments.names]


def _report(result: Result) -> Result:
    line = f"{result.verdict.value:14} {result.mutant.name:42} {result.mutant.rule}"
    print(f"{line}\n{'':15}by {result.first_failure}" if result.first_failure else line, flush=True)
    return result


def _summary(results: list[Result], *, is_catalogue: bool) -> int:
    counts = Counter(result.verdict for result in results)
    caught = counts[Verdict.CAUGHT] + counts[Verdict.HUNG]
    print(
        f"mutants {len(results)}, caught {caught}, survived {counts[Verdict.SURVIVED]}, broken {counts[Verdict.BROKEN]}"
    )
    return int(is_catalogue and caught < len(results))


if __name__ == "__main__":
    sys.exit(main())
