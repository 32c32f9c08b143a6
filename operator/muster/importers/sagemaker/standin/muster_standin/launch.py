"""Run a launch script in a sandbox with the stand-in for the SDK, and report how the script ended."""

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
from .errors import RAISED_ERRORS, ForbiddenOperation, MissingOption, UnsupportedOperation
from .recorder import Recorder
from .unknown import UnknownValue


class ScriptPart(TypedDict):
    """The Python code of a script or of a notebook's cell."""

    name: str
    text: str


class Request(TypedDict):
    """The script to run, and the user's AWS options."""

    parts: list[ScriptPart]
    folder: str
    arguments: list[str]
    region: str | None
    account: str | None
    role: str | None


def main(reports_descriptor: int, answers_descriptor: int) -> None:
    """Read a request from `answers_descriptor`, run the script, and write reports to `reports_descriptor`."""
    with (
        os.fdopen(reports_descriptor, "w", encoding="utf-8") as reports,
        os.fdopen(answers_descriptor, encoding="utf-8") as answer_file,
    ):
        request: Request = json.loads(answer_file.readline())
        names = [part["name"] for part in request["parts"]]
        recorder = Recorder(reports, answer_file, names)
        state.set_state(state.State(recorder, AccountOptions(request["region"], request["account"], request["role"])))
        modules.install()
        sandbox.install()
        problem = _run_and_catch(request)
        if problem is None:
            recorder.send("done", {})
        else:
            recorder.send("failed", _describe_failure(problem, names))


def _run_and_catch(request: Request) -> BaseException | None:
    """Run the script; return the exception that ended it, or None."""
    try:
        _run(request)
        _wait_for_threads()
    except SystemExit as exit_error:
        return RAISED_ERRORS[0] if RAISED_ERRORS else exit_error if exit_error.code not in {None, 0} else None
    except BaseException as problem:  # noqa: BLE001 - report any exception of the script
        return problem
    return RAISED_ERRORS[0] if RAISED_ERRORS else None


def _run(request: Request) -> None:
    main_module = ModuleType("__main__")
    script_name = request["parts"][0]["name"]
    vars(main_module).update(__file__=str(Path(request["folder"], script_name)), get_ipython=Notebook, display=print)
    sys.modules["__main__"] = main_module
    sys.argv = [script_name, *request["arguments"]]
    sys.path[0] = request["folder"]
    for part in request["parts"]:
        lines = part["text"].splitlines(keepends=True)
        linecache.cache[part["name"]] = (len(part["text"]), None, lines, part["name"])
        code = compile(part["text"], part["name"], "exec", dont_inherit=True)
        exec(code, vars(main_module))  # noqa: S102 - this module's purpose is to run the user's script


def _wait_for_threads() -> None:
    """Wait for threads as Python does at exit, because a script may start jobs in threads."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _describe_failure(problem: BaseException, names: list[str]) -> dict[str, object]:
    script_frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename in names]
    last_frame = script_frames[-1] if script_frames else None
    location = f"{last_frame.filename}:{last_frame.lineno}" if last_frame else _locate_syntax_error(problem)
    missing_module = problem.name if isinstance(problem, ModuleNotFoundError) else None
    message = (
        str(problem)
        if isinstance(problem, (ForbiddenOperation, MissingOption, UnsupportedOperation))
        else _describe_error(problem)
    )
    return {"at": location, "message": message, "missing": missing_module}


def _locate_syntax_error(problem: BaseException) -> str:
    return f"{problem.filename}:{problem.lineno}" if isinstance(problem, SyntaxError) else ""


def _describe_error(problem: BaseException) -> str:
    text = "".join(traceback.format_exception_only(type(problem), problem)).strip()
    if isinstance(problem, KeyError) and _is_environment_lookup(problem):
        return f"{text}: the script gets only the variables of the option --env: add --env {problem.args[0]}"
    return text


def _is_environment_lookup(problem: BaseException) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    return bool(frames) and frames[-1].f_code is type(os.environ).__getitem__.__code__


class Notebook:
    """The result of `get_ipython()`. It records files that the notebook writes and skips other magics."""

    def run_cell_magic(self, magic: str, line: str, cell: str) -> None:
        """Run the magic of a cell that begins with `%%magic line`."""
        if magic == "writefile":
            *options, path = line.split()
            state.get_state().notebook_files.add(Path(path).resolve())
            state.get_state().recorder.send("file", {"path": path, "append": "-a" in options, "text": cell})
            return
        self._warn_about_skip(f"%%{magic} {line}")

    def run_line_magic(self, magic: str, line: str, *_: object) -> None:
        """Run `%magic line`."""
        self._warn_about_skip(f"%{magic} {line}")

    def system(self, command: str) -> None:
        """Run `!command`."""
        self._warn_about_skip(f"!{command}")

    def getoutput(self, command: str) -> UnknownValue:
        """Run `x = !command`."""
        return state.get_state().create_unknown(f"!{command}")

    def _warn_about_skip(self, text: str) -> None:
        state.get_state().recorder.warn(f"{text.strip()} is skipped")
