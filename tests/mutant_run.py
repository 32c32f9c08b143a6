"""`make mutants` counts how many small faults in the source the tests find (docs/mutation.md).

One process imports everything once. It forks a process for each mutant, which replaces the code of the mutated function
and runs the tests that execute the mutated line, until one fails. So it sees only code that runs in the process of the
tests: not what agents and commands execute that a test starts as programs of their own.
"""

import argparse
import ast
import builtins
import contextlib
import gc
import importlib
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Self

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from muster_dev.mutant_results import KILLED, NOT_APPLICABLE, NOT_COVERED, SURVIVED, Result, make_list, make_table
from muster_dev.mutants import MARK, Mutant, choose_sample, mark_lines, mutate, name_line
from muster_dev.paths import ROOT

INTEGRATION = ("aws", "collector", "controller", "listing", "remote", "sagemaker_life", "storage")
"""The folders of tests/integration with tests that execute code of the areas in their own process."""

IN_PROCESS = ("tests/unit", *(f"tests/integration/{folder}" for folder in INTEGRATION))
MAX_TEST_SECONDS = 8.0
"""Tests that take longer are left out."""

WAITING = 0.25
"""What a second of waiting costs, in seconds of processor time."""

BUDGET_SECONDS = 4.0
"""What the tests of one mutant may cost together, as measured without a mutant."""

PROGRAMS = frozenset({"sitecustomize", "__main__", "archive_main"})
"""Modules that act when they are imported."""

FORKED_EXIT = {0: SURVIVED, 1: KILLED, 3: NOT_APPLICABLE}


@dataclass
class Options:
    """What the command line says."""

    count: int
    beside: int
    output: Path


@dataclass
class Coverage:
    """Which tests execute which statements, and what they cost."""

    tests_by_line: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    costs: dict[int, float] = field(default_factory=dict)

    def find_tests(self, mutant: Mutant) -> Sequence[int]:
        """Return the tests that execute the mutant's statement, the cheapest first."""
        tests = self.tests_by_line.get(name_line(mutant.path, mutant.lines.start), set())
        return sorted(tests, key=lambda test: self.costs[test])

    def read(self, file: Path) -> None:
        """Add what a process recorded."""
        with file.open("rb") as stream, contextlib.suppress(EOFError):
            while True:
                index, cost, executed = pickle.load(stream)  # noqa: S301 - this program wrote it
                self.costs[index] = cost
                for line in executed:
                    self.tests_by_line[line].add(index)


class LiveCode:
    """The functions of the areas' modules as they are in memory."""

    def __init__(self, paths: frozenset[str]) -> None:
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename in paths:
                self._functions[found.__code__.co_filename].append(found)

    def replace(self, path: str, tree: ast.Module) -> bool:
        """Give the module's functions the code of a changed tree; return whether this changes anything.

        A module that is imported later gets it, too.
        """
        text = Path(path).read_text(encoding="utf-8")
        changed_module = compile(tree, path, "exec", dont_inherit=True)
        new_codes = _index(changed_module)
        old_codes = _index(compile(text, path, "exec", dont_inherit=True))
        _load_changed(path, changed_module)
        changed = not self._functions[path]
        for function in self._functions[path]:
            old = function.__code__
            key = (old.co_qualname, old.co_firstlineno)
            if old in old_codes[key]:
                new = new_codes[key][old_codes[key].index(old)]
                if new != old:
                    function.__code__ = new
                    changed = True
        return changed


def _index(code: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    """List the code of a module's functions by qualified name and line."""
    codes: dict[tuple[str, int], list[CodeType]] = defaultdict(list)
    rest = [code]
    while rest:
        current = rest.pop()
        codes[current.co_qualname, current.co_firstlineno].append(current)
        rest.extend(constant for constant in current.co_consts if isinstance(constant, CodeType))
    return codes


def _load_changed(path: str, code: CodeType) -> None:
    """Let imports of this file execute this code."""
    get_code = SourceFileLoader.get_code

    def get_changed(loader: SourceFileLoader, name: str) -> CodeType | None:
        return code if loader.get_filename(name) == path else get_code(loader, name)

    SourceFileLoader.get_code = get_changed  # type: ignore[method-assign,assignment]


class MutantRun:
    """The pytest plug-in that runs mutants in place of the tests."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._items: Sequence[pytest.Item] = []
        self._killers: dict[str, Counter[int]] = defaultdict(Counter)
        self._live_code = LiveCode(frozenset())
        self._coverage = Coverage()

    def pytest_sessionstart(self) -> None:
        """Make Hypothesis try the same examples each time, and don't let it look for a smaller one that fails."""
        generate = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        default = hypothesis.settings()
        hypothesis.settings.register_profile("mutants", default, derandomize=True, database=None, phases=generate)
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run everything, and print the table."""
        started = time.monotonic()
        self._items = session.items
        sample = choose_sample(ROOT, self._options.count)
        for path in sorted({mutant.path for mutant in sample}):
            _import_module(ROOT / path)
        gc.unfreeze()  # else gc knows no function that was imported before the tests were collected
        self._live_code = LiveCode(frozenset(str(ROOT / mutant.path) for mutant in sample))
        gc.collect()
        gc.freeze()  # forked processes then copy less memory
        self._coverage = self._measure(sample)
        _say(f"measured the tests in {time.monotonic() - started:.0f} s")
        results: list[Result] = []
        try:
            for result in self._run_mutants(sample):
                results.append(result)
                if len(results) % 100 == 0:
                    _say(f"{len(results)} mutants after {time.monotonic() - started:.0f} s")
        except KeyboardInterrupt:
            _say("interrupted: so far")
        self._options.output.write_text(make_list(results), encoding="utf-8")
        _say(f"\n{make_table(results)}\n")
        _say(f"{_measure_processor_time():.0f} s of processor time, {time.monotonic() - started:.0f} s in all")
        return True

    def _measure(self, sample: Sequence[Mutant]) -> Coverage:
        """Run all tests once, with code that says which mutants' statements it executes. Leave out tests that fail.

        They run in a random order, as they do later: a test that needs its neighbours fails here.
        """
        indices = list(range(len(self._items)))
        random.Random(0).shuffle(indices)  # noqa: S311 - it is no secret
        size = -(-len(indices) // self._options.beside)
        coverage = Coverage()
        with Forks(self._options.beside) as forks:
            for start in range(0, len(indices), size):
                forks.start(partial(self._record, indices=indices[start : start + size], sample=sample))
            for _, folder, _ in forks.wait_all():
                coverage.read(folder / "result")
        failed = [self._items[index].nodeid for index in indices if index not in coverage.costs]
        _say(f"{len(failed)} of {len(indices)} tests are left out, as they failed or took too long: {' '.join(failed)}")
        return coverage

    def _record(self, folder: Path, *, indices: Sequence[int], sample: Sequence[Mutant]) -> int:
        """Run tests, and write which pass, what they cost, and which mutants' statements they execute."""
        self._use(folder)
        signal.signal(signal.SIGALRM, _fail_slow_test)
        executed: set[str] = set()
        setattr(builtins, MARK, executed.add)
        for path in sorted({mutant.path for mutant in sample}):
            self._live_code.replace(str(ROOT / path), mark_lines((ROOT / path).read_text(encoding="utf-8"), path))
        with (folder / "result").open("wb") as file:
            for index, following in zip(indices, [*indices[1:], None], strict=True):
                executed.clear()
                started = _Clock()
                signal.setitimer(signal.ITIMER_REAL, MAX_TEST_SECONDS)
                passed = self._passes(index, following)
                signal.setitimer(signal.ITIMER_REAL, 0)
                if passed:
                    pickle.dump((index, started.measure_cost(), list(executed)), file)
                    file.flush()
        return 0

    def _use(self, folder: Path) -> None:
        """Let the tests of this process use their own temporary folder."""
        import temporary_folder  # noqa: PLC0415 - pytest rewrites its assertions, if it imports it first

        temporary = folder / "m"
        temporary.mkdir()
        config = self._items[0].config
        config.stash[temporary_folder.FOLDER] = temporary
        temporary_folder.use(temporary)
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._given_basetemp, factory._basetemp = temporary / temporary_folder.OF_PYTEST, None

    def _passes(self, index: int, following: int | None) -> bool:
        """Run a test; return whether it passed. Keep the fixtures that the following test shares."""
        next_item = None if following is None else self._items[following]
        reports = runtestprotocol(self._items[index], log=False, nextitem=next_item)
        return all(report.passed for report in reports)

    def _run_mutants(self, sample: Sequence[Mutant]) -> Iterator[Result]:
        """Run the tests of each mutant."""
        running: dict[int, tuple[Mutant, Sequence[int]]] = {}
        with Forks(self._options.beside) as forks:
            for mutant in sample:
                tests = self._choose_tests(mutant)
                if not tests:
                    yield Result(mutant, NOT_COVERED)
                    continue
                for pid, folder, status in forks.wait_for_room():
                    yield self._conclude(*running.pop(pid), folder, status)
                running[forks.start(partial(self._try_mutant, mutant=mutant, tests=tests))] = (mutant, tests)
            for pid, folder, status in forks.wait_all():
                yield self._conclude(*running.pop(pid), folder, status)

    def _choose_tests(self, mutant: Mutant) -> Sequence[int]:
        """Choose as many tests as the budget allows.

        Those that found other mutants of this file come first, then those that found others of this area: a long table
        costs more than hundreds of tests that execute the same line and check something else.
        """
        of_file, of_area = self._killers[mutant.path], self._killers[mutant.area]
        chosen = []
        budget = BUDGET_SECONDS
        for test in sorted(self._coverage.find_tests(mutant), key=lambda test: (-of_file[test], -of_area[test])):
            chosen.append(test)
            budget -= self._coverage.costs[test]
            if budget <= 0:
                break
        return chosen

    def _try_mutant(self, folder: Path, *, mutant: Mutant, tests: Sequence[int]) -> int:
        """Run tests on a mutant until one fails."""
        path = ROOT / mutant.path
        try:
            changed = self._live_code.replace(str(path), mutate(path.read_text(encoding="utf-8"), mutant.number))
        except (SyntaxError, ValueError):  # it has other free variables
            changed = False
        if not changed:
            return 3
        self._use(folder)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            (folder / "test").write_text(str(test))
            cost = self._coverage.costs[test]
            signal.setitimer(signal.ITIMER_PROF, 1 + 10 * cost)
            signal.setitimer(signal.ITIMER_REAL, 2 * MAX_TEST_SECONDS + 20 * cost)
            if not self._passes(test, following):
                self._items[0].session._setupstate.teardown_exact(None)
                return 1
        return 0

    def _conclude(self, mutant: Mutant, tests: Sequence[int], folder: Path, status: int) -> Result:
        """Return what became of a mutant. A process that a signal ended had no time left, or crashed."""
        outcome = FORKED_EXIT.get(os.waitstatus_to_exitcode(status), KILLED)
        if outcome != KILLED:
            return Result(mutant, outcome, f"{len(tests)} tests")
        test = int((folder / "test").read_text())
        for place in (mutant.path, mutant.area):
            self._killers[place][test] += 1
        how = "" if os.WIFEXITED(status) else " (out of time)"
        return Result(mutant, outcome, self._items[test].nodeid + how)


class Forks:
    """Processes that run a function each, in a session and a folder of their own."""

    def __init__(self, beside: int) -> None:
        self._beside = beside
        self._folders: dict[int, Path] = {}
        self._root = Path(tempfile.mkdtemp(prefix="f-"))
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for pid in self._folders:
            os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(self._root, ignore_errors=True)

    def start(self, run: Callable[[Path], int]) -> int:
        """Start a process; return its id."""
        folder = self._root / str(self._number)
        folder.mkdir()
        self._number += 1
        pid = os.fork()
        if pid:
            self._folders[pid] = folder
            return pid
        code = 2
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            code = run(folder)
        finally:
            os._exit(code)

    def wait_for_room(self) -> Iterator[tuple[int, Path, int]]:
        """Yield ended processes, their folders and statuses, until another one may start."""
        while len(self._folders) >= self._beside:
            yield from self._wait()

    def wait_all(self) -> Iterator[tuple[int, Path, int]]:
        """Yield all processes as they end."""
        while self._folders:
            yield from self._wait()

    def _wait(self) -> Iterator[tuple[int, Path, int]]:
        pid, status = os.wait()
        if pid not in self._folders:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        folder = self._folders.pop(pid)
        yield pid, folder, status
        shutil.rmtree(folder, ignore_errors=True)


def _import_module(file: Path) -> None:
    """Import a module of an area, so that its functions are in memory before processes are forked."""
    source_root = next(ROOT / name for name in ("operator", "training") if file.is_relative_to(ROOT / name))
    if file.stem not in PROGRAMS:
        importlib.import_module(".".join(file.relative_to(source_root).with_suffix("").parts))


def _fail_slow_test(*_: object) -> None:
    """End a test that takes too long."""
    pytest.fail("it took too long")


class _Clock:
    """Measures what a test costs since it was created."""

    def __init__(self) -> None:
        self._processor_time = _measure_processor_time()
        self._start = time.monotonic() - _measure_delay()

    def measure_cost(self) -> float:
        """Return the processor time and a part of the waiting, but not the waiting for a busy processor."""
        used = _measure_processor_time() - self._processor_time
        waited = time.monotonic() - _measure_delay() - self._start - used
        return used + WAITING * max(0.0, waited)


def _measure_delay() -> float:
    """Return how long this thread has waited for a processor."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except FileNotFoundError:  # this kernel does not count it
        return 0.0


def _measure_processor_time() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the result


def main() -> int:
    """Run pytest with the plug-in."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many mutants of each area (default: %(default)s)")
    parser.add_argument("--beside", type=int, default=os.cpu_count() or 1, help="how many processes run at a time")
    parser.add_argument(
        "--output", type=Path, default=Path("mutants.tsv"), help="the list of all mutants, survivors first"
    )
    parser.add_argument("paths", nargs="*", default=IN_PROCESS, help="the tests")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets have the same order in each run.
        os.execve(
            sys.executable, [sys.executable, "-m", "mutant_run", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    options = Options(arguments.count, arguments.beside, arguments.output)
    how = ["-q", "--capture=sys", "--tb=no", "-pno:cacheprovider", "-m", "not long and not gpu and not attack"]
    return int(pytest.main([*how, *arguments.paths], plugins=[MutantRun(options)]))


if __name__ == "__main__":
    sys.exit(main())
