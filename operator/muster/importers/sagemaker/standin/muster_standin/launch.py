"""The process of a launch script: run the script in a sandbox with the stand-in SDK, and report how it ended."""

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

from . import modules, sandbox, state
from .account import AccountOptions
from .errors import RAISED, Forbidden, MissingOption, Unsupported
from .recorder import Recorder
from .unknown import Unknown


class Part(TypedDict):
    """A part of the script: a file, or a notebook's cell."""

    name: str
    text: str


class Order(TypedDict):
    """The script to run: its parts, folder and arguments, and the user's AWS options."""

    parts: list[Part]
    folder: str
    arguments: list[str]
    region: str | None
    account: str | None
    role: str | None


def main(out: int, answers: int) -> None:
    """Read an order from the descriptor `answers`, run it, and write reports to the descriptor `out`."""
    with os.fdopen(out, "w", encoding="utf-8") as reports, os.fdopen(answers, encoding="utf-8") as answer_file:
        order: Order = json.loads(answer_file.readline())
        names = [part["name"] for part in order["parts"]]
        recorder = Recorder(reports, answer_file, names)
        state.set_state(state.State(recorder, AccountOptions(order["region"], order["account"], order["role"])))
        modules.install()
        sandbox.install()
        problem = _run_to_end(order)
        if problem is None:
            recorder.send("done", {})
        else:
            recorder.send("failed", _describe_end(problem, names))


def _run_to_end(order: Order) -> BaseException | None:
    """Run the script; return the exception that ended it, or None."""
    try:
        _run(order)
        _wait_for_threads()
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


def _wait_for_threads() -> None:
    """Wait for threads as Python does at exit, because a script may start jobs in threads."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _describe_end(problem: BaseException, names: list[str]) -> dict[str, object]:
    script_frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename in names]
    last = script_frames[-1] if script_frames else None
    location = f"{last.filename}:{last.lineno}" if last else _syntax_place(problem)
    missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
    message = str(problem) if isinstance(problem, (Forbidden, MissingOption, Unsupported)) else _describe_error(problem)
    return {"at": location, "message": message, "missing": missing}


def _syntax_place(problem: BaseException) -> str:
    return f"{problem.filename}:{problem.lineno}" if isinstance(problem, SyntaxError) else ""


def _describe_error(problem: BaseException) -> str:
    text = "".join(traceback.format_exception_only(type(problem), problem)).strip()
    if isinstance(problem, KeyError) and _is_environment_lookup(problem):
        return f"{text}: the script gets only the variables that --env names: add --env {problem.args[0]}"
    return text


def _is_environment_lookup(problem: BaseException) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    return bool(frames) and frames[-1].f_code is type(os.environ).__getitem__.__code__


class Notebook:
    """The result of `get_ipython()`: it records written files and skips other magic."""

    def run_cell_magic(self, magic: str, line: str, cell: str) -> None:
        """Run `%%magic line` with the cell below it."""
        if magic == "writefile":
            *options, path = line.split()
            state.current_state().written.add(Path(path).resolve())
            state.current_state().recorder.send("file", {"path": path, "append": "-a" in options, "text": cell})
            return
        self._left_out(f"%%{magic} {line}")

    def run_line_magic(self, magic: str, line: str, *_: object) -> None:
        """Run `%magic line`."""
        self._left_out(f"%{magic} {line}")

    def system(self, command: str) -> None:
        """`!command`."""
        self._left_out(f"!{command}")

    def getoutput(self, command: str) -> Unknown:
        """Run `x = !command`."""
        return state.current_state().unknown(f"!{command}")

    def _left_out(self, text: str) -> None:
        state.current_state().recorder.warn(f"{text.strip()} is skipped")
