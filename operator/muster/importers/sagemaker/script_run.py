"""Run a launch script in its own process, with the stand-in SDK, and read its reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from muster.importers.sagemaker.notebook import Part
from muster.importers.sagemaker.translate.recording import (
    EstimatorFit,
    Failure,
    Finished,
    Note,
    Question,
    Recording,
    TrainerRun,
    WrittenFile,
    parse_record,
)

_STAND_IN = Path(__file__).parent / "standin"

_BEGIN = "import sys; sys.path[0] = {folder!r}; from muster_standin import launch; launch.main({out}, {answers})"
"""The stand-in's folder is the first on the module path until the script's folder replaces it."""


class UnsupportedQuestion(Exception):
    """muster can't answer the script's question; the message says why."""


Answer = Callable[[Mapping[str, str]], str]
"""Return the address of a training image for the arguments of `image_uris.retrieve`. Raises `UnsupportedQuestion`."""


@dataclass(frozen=True)
class ScriptRequest:
    """The script to run: its parts, folders, arguments, Python and environment, and the user's AWS options.

    The script imports its own modules from `script_folder`; relative paths start from `working_folder`.
    """

    parts: Sequence[Part]
    script_folder: Path
    working_folder: Path
    arguments: Sequence[str]
    python: str
    environment: Mapping[str, str]
    timeout_seconds: float
    region: str | None = None
    account: str | None = None
    role: str | None = None


def run_script(order: ScriptRequest, answer: Answer) -> Recording:
    """Run the script, and return its reports. Raises `OSError` if its Python can't start."""
    with (
        tempfile.TemporaryDirectory(prefix="muster-import-") as home,
        _start_process(order, home) as (process, reports, input_file),
    ):
        killer = threading.Thread(target=_wait_or_kill, args=(process, order.timeout_seconds))
        killer.start()
        try:
            input_file.write(_first_line(order))
            input_file.flush()
            recording = _read_reports(reports, input_file, answer)
        except BrokenPipeError:
            recording = Recording(failure=_NO_REPORT)
        except BaseException:
            _kill(process)
            raise
        finally:
            code = process.wait()
            killer.join()
    if recording.failure is _NO_REPORT:
        return Recording(recording.runs, recording.notes, recording.files, _describe_early_end(order, code))
    return recording


def _wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill the script after `seconds`; the last record of its reports is then missing."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children, which would keep the pipe for reports open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


_NO_REPORT = Failure(Note("", "it ended without a report"))


def _describe_early_end(order: ScriptRequest, code: int) -> Failure:
    if code < 0:
        message = (
            f"the script still ran after {order.timeout_seconds:g} s and muster killed it; if it needs longer, set "
            "--timeout SECONDS; if it waits for a training job, note that `muster import` starts none"
        )
        return Failure(Note("", message))
    return Failure(Note("", f"the script's process ended with exit code {code}"))


def _first_line(order: ScriptRequest) -> str:
    fields = {
        "parts": [{"name": part.name, "text": part.text} for part in order.parts],
        "folder": str(order.script_folder),
        "arguments": list(order.arguments),
        "region": order.region,
        "account": order.account,
        "role": order.role,
    }
    return json.dumps(fields) + "\n"


@contextmanager
def _start_process(order: ScriptRequest, home: str) -> Iterator[tuple[subprocess.Popen[bytes], TextIO, TextIO]]:
    """Start the process; yield it with the files of its reports and its input. Its output goes to standard error."""
    reports_end, out = os.pipe()
    answers, input_end = os.pipe()
    program = _BEGIN.format(folder=str(_STAND_IN), out=out, answers=answers)
    with (
        os.fdopen(reports_end, encoding="utf-8") as reports,
        os.fdopen(input_end, "w", encoding="utf-8") as input_file,
        subprocess.Popen(
            [order.python, "-c", program],
            pass_fds=(out, answers),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            stdout=sys.stderr.fileno(),
            cwd=order.working_folder,
            # the script must not read the user's home folder, above all credentials
            env={**order.environment, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"},
        ) as process,
    ):
        os.close(out)
        os.close(answers)
        yield process, reports, input_file


def _read_reports(reports: TextIO, input_file: TextIO, answer: Answer) -> Recording:
    runs: list[EstimatorFit | TrainerRun] = []
    notes: list[Note] = []
    files: dict[str, str] = {}
    for line in reports:
        match parse_record(line):
            case EstimatorFit() | TrainerRun() as run:
                runs.append(run)
            case Note() as note:
                notes.append(note)
            case WrittenFile(path, append, text):
                files[path] = files.get(path, "") + text if append else text
            case Question(about):
                input_file.write(_answer_question(about, answer))
                input_file.flush()
            case Failure() as failure:
                return Recording(runs, notes, files, failure)
            case Finished():
                return Recording(runs, notes, files)
    return Recording(runs, notes, files, _NO_REPORT)


def _answer_question(arguments: Mapping[str, str], answer: Answer) -> str:
    try:
        return json.dumps({"text": answer(arguments)}) + "\n"
    except UnsupportedQuestion as problem:
        return json.dumps({"problem": str(problem)}) + "\n"
