"""The mutation check: `python -m tests.crash.mutants [--random N] [--seed S] [NAME …]`.

Without names it runs every mutant of the catalogue; with `--random N` it runs N random ones instead.
Exits 1 when a mutant of the catalogue survives, 2 when a patch no longer applies.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.crash.mutants.catalogue import mutants, suites_for
from tests.crash.mutants.patches import (
    Mutant,
    PatchError,
    Result,
    Verdict,
    check_applies,
    pinned_tree,
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
    with pinned_tree() as tree:
        needed = arguments.suites or _union(suites_for(mutant) for mutant in chosen)
        verdict, failure = run_suites(tree / "src", needed, tree)
        if verdict is not Verdict.SURVIVED:
            print(f"the suites fail without any mutation: {failure}", file=sys.stderr)
            return 2
        with ThreadPoolExecutor(arguments.jobs) as pool:
            tried = pool.map(lambda mutant: run(mutant, arguments.suites or suites_for(mutant), tree), chosen)
            results = [_report(result) for result in tried]
    return _summary(results, is_catalogue=not arguments.random)


def _union(suites: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(suite for some in suites for suite in some))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants of the catalogue; none: all")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random mutants instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folders", nargs="+", default=["log"], help="below src/lowwater, for random mutants")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--suites", nargs="+", help="pytest paths to run instead of the default ones")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace) -> list[Mutant]:
    if arguments.random:
        return draw(arguments.random, seed=arguments.seed, folders=tuple(arguments.folders))
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
    print(f"mutants {len(results)}, " + ", ".join(f"{verdict.value.lower()} {counts[verdict]}" for verdict in Verdict))
    return int(is_catalogue and counts[Verdict.CAUGHT] < len(results))


if __name__ == "__main__":
    sys.exit(main())
