"""Run a launch script in its own process, with the stand-in for the SDK, and read the process's reports."""

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

from muster.importers.sagemaker.notebook import ScriptPart
from muster.importers.sagemaker.translate.recording import (
    EstimatorFit,
    Failure,
    Note,
    NotebookFile,
    Question,
    Recording,
    ScriptEnd,
    TrainerRun,
    parse_record,
)

_STAND_IN = Path(__file__).parent / "standin"

_PROGRAM = "import sys; sys.path[0] = {folder!r}; from muster_standin import launch; launch.main({reports}, {answers})"
"""The program puts the stand-in's folder first on the module path; later the script's folder replaces it there."""


class UnsupportedQuestion(Exception):
    """muster can't answer the script's question. The message has the reason."""


Answer = Callable[[Mapping[str, str]], str]
"""Returns the URI of a training image for the arguments of `image_uris.retrieve`. Raises `UnsupportedQuestion`."""


@dataclass(frozen=True)
class ScriptRequest:
    """The script to run, and the user's AWS options.

    The script imports its own modules from `script_folder`. Relative paths start from `working_folder`.
    """

    parts: Sequence[ScriptPart]
    script_folder: Path
    working_folder: Path
    arguments: Sequence[str]
    python: str
    environment: Mapping[str, str]
    timeout_seconds: float
    region: str | None = None
    account: str | None = None
    role: str | None = None


def run_script(request: ScriptRequest, answer: Answer) -> Recording:
    """Run the script, and return its reports. Raises `OSError` if the script's Python can't start."""
    with (
        tempfile.TemporaryDirectory(prefix="muster-import-") as home,
        _start_process(request, home) as (process, reports, input_file),
    ):
        killer = threading.Thread(target=_wait_or_kill, args=(process, request.timeout_seconds))
        killer.start()
        try:
            input_file.write(_serialise_request(request))
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
        return Recording(recording.runs, recording.notes, recording.files, _describe_early_end(request, code))
    return recording


def _wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill the script after `seconds` unless it has ended."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children, because they would keep the pipe for reports open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


_NO_REPORT = Failure(Note("", "it ended without a report"))


def _describe_early_end(request: ScriptRequest, code: int) -> Failure:
    if code < 0:
        message = (
            f"the script still ran after {request.timeout_seconds:g} s and muster killed it; if it needs longer, set "
            "--timeout SECONDS; if it waits for a training job, note that `muster import` starts none"
        )
        return Failure(Note("", message))
    return Failure(Note("", f"the script's process ended with exit code {code}"))


def _serialise_request(request: ScriptRequest) -> str:
    fields = {
        "parts": [{"name": part.name, "text": part.text} for part in request.parts],
        "folder": str(request.script_folder),
        "arguments": list(request.arguments),
        "region": request.region,
        "account": request.account,
        "role": request.role,
    }
    return json.dumps(fields) + "\n"


@contextmanager
def _start_process(request: ScriptRequest, home: str) -> Iterator[tuple[subprocess.Popen[bytes], TextIO, TextIO]]:
    """Yield the process, the file of its reports and the file of its input. Its output goes to standard error."""
    reports_end, reports_descriptor = os.pipe()
    answers_descriptor, input_end = os.pipe()
    program = _PROGRAM.format(folder=str(_STAND_IN), reports=reports_descriptor, answers=answers_descriptor)
    with (
        os.fdopen(reports_end, encoding="utf-8") as reports,
        os.fdopen(input_end, "w", encoding="utf-8") as input_file,
        subprocess.Popen(
            [request.python, "-c", program],
            pass_fds=(reports_descriptor, answers_descriptor),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            stdout=sys.stderr.fileno(),
            cwd=request.working_folder,
            # The script must not read the user's home folder, which may contain credentials.
            env={**request.environment, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"},
        ) as process,
    ):
        os.close(reports_descriptor)
        os.close(answers_descriptor)
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
            case NotebookFile(path, append, text):
                files[path] = files.get(path, "") + text if append else text
            case Question(arguments):
                input_file.write(_answer_question(arguments, answer))
                input_file.flush()
            case Failure() as failure:
                return Recording(runs, notes, files, failure)
            case ScriptEnd():
                return Recording(runs, notes, files)
    return Recording(runs, notes, files, _NO_REPORT)


def _answer_question(arguments: Mapping[str, str], answer: Answer) -> str:
    try:
        return json.dumps({"text": answer(arguments)}) + "\n"
    except UnsupportedQuestion as problem:
        return json.dumps({"problem": str(problem)}) + "\n"
