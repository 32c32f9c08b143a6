"""The process of a launch script: run it with the stand-in, behind the guards, and report how it ended."""

from __future__ import annotations

import json
import linecache
import os
import sys
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import TypedDict

from . import modules, walls, world
from .facts import Facts
from .recorder import Recorder
from .refused import RAISED, NotAllowed, NotGiven, Refused
from .unknown import Unknown


class Part(TypedDict):
    """A piece of the script: a file, or a notebook's cell."""

    name: str
    text: str


class Order(TypedDict):
    """What to run: the script's parts in order, its folder and arguments, and the account's facts."""

    parts: list[Part]
    folder: str
    arguments: list[str]
    region: str | None
    account: str | None
    role: str | None


def main(out: int, answers: int) -> None:
    """Read an order from the descriptor `answers`, run it, and write what happens to the descriptor `out`."""
    with os.fdopen(out, "w", encoding="utf-8") as reports, os.fdopen(answers, encoding="utf-8") as answer_file:
        order: Order = json.loads(answer_file.readline())
        names = [part["name"] for part in order["parts"]]
        recorder = Recorder(reports, answer_file, names)
        world.begin(world.World(recorder, Facts(order["region"], order["account"], order["role"])))
        modules.install()
        walls.close()
        problem = _run_to_its_end(order)
        if problem is None:
            recorder.say("done", {})
        else:
            recorder.say("failed", _ending(problem, names))


def _run_to_its_end(order: Order) -> BaseException | None:
    """Run the script; return the exception that ended it, or None."""
    try:
        _run(order)
        _await_threads()
    except SystemExit as leave:
        return RAISED[0] if RAISED else leave if leave.code not in {None, 0} else None
    except BaseException as problem:  # noqa: BLE001 - report any exception of the script
        return problem
    return RAISED[0] if RAISED else None


def _run(order: Order) -> None:
    main_module = ModuleType("__main__")
    first = order["parts"][0]["name"]
    vars(main_module).update(__file__=str(Path(order["folder"], first)), get_ipython=Notebook, display=print)
    sys.modules["__main__"] = main_module
    sys.argv = [first, *order["arguments"]]
    sys.path[0] = order["folder"]
    for part in order["parts"]:
        lines = part["text"].splitlines(keepends=True)
        linecache.cache[part["name"]] = (len(part["text"]), None, lines, part["name"])
        code = compile(part["text"], part["name"], "exec", dont_inherit=True)
        exec(code, vars(main_module))  # noqa: S102 - this module's purpose is to run the user's script


def _await_threads() -> None:
    """Wait as Python does at exit: a script may start its jobs in threads."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _ending(problem: BaseException, names: list[str]) -> dict[str, object]:
    own = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename in names]
    last = own[-1] if own else None
    place = f"{last.filename}:{last.lineno}" if last else _syntax_place(problem)
    missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
    message = str(problem) if isinstance(problem, (NotAllowed, NotGiven, Refused)) else _said(problem)
    return {"at": place, "message": message, "missing": missing}


def _syntax_place(problem: BaseException) -> str:
    return f"{problem.filename}:{problem.lineno}" if isinstance(problem, SyntaxError) else ""


def _said(problem: BaseException) -> str:
    text = "".join(traceback.format_exception_only(type(problem), problem)).strip()
    if isinstance(problem, KeyError) and _asked_environment(problem):
        return f"{text}: the script gets only the variables that --env names: add --env {problem.args[0]}"
    return text


def _asked_environment(problem: BaseException) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    return bool(frames) and frames[-1].f_code is type(os.environ).__getitem__.__code__


class Notebook:
    """The object that `get_ipython()` returns: it records files and skips all other magic."""

    def run_cell_magic(self, magic: str, line: str, cell: str) -> None:
        """`%%magic line`, and the cell below it."""
        if magic == "writefile":
            *options, path = line.split()
            world.world().written.add(Path(path).resolve())
            world.world().recorder.say("file", {"path": path, "append": "-a" in options, "text": cell})
            return
        self._left_out(f"%%{magic} {line}")

    def run_line_magic(self, magic: str, line: str, *_: object) -> None:
        """`%magic line`."""
        self._left_out(f"%{magic} {line}")

    def system(self, command: str) -> None:
        """`!command`."""
        self._left_out(f"!{command}")

    def getoutput(self, command: str) -> Unknown:
        """`x = !command`."""
        return world.world().unknown(f"!{command}")

    def _left_out(self, text: str) -> None:
        world.world().recorder.warn(f"{text.strip()} is skipped")
