"""Runs a launch script in a process of its own, with the stand-in, and listens to it."""

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
    Done,
    EstimatorFit,
    Failure,
    Note,
    Question,
    Recording,
    TrainerRun,
    WrittenFile,
    record,
)

_STAND_IN = Path(__file__).parent / "standin"

_BEGIN = "import sys; sys.path[0] = {folder!r}; from muster_standin import launch; launch.main({out}, {answers})"
"""The stand-in's folder is on the module path only until the script's own takes its place."""


class NoAnswer(Exception):
    """What the script asked for isn't known; the message says why."""


Answer = Callable[[Mapping[str, str]], str]
"""The address of a training image from the arguments of `image_uris.retrieve`. Raises `NoAnswer`."""


@dataclass(frozen=True)
class Order:
    """What to run: the parts in their order, where, with which arguments, Python and environment; and what is known.

    `script_folder` is where the script finds its own modules, `working_folder` what its relative paths start from.
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


def run_script(order: Order, answer: Answer) -> Recording:
    """Run the script to its end and give back what it said. Raises `OSError` when its Python can't be started."""
    with tempfile.TemporaryDirectory(prefix="muster-import-") as home, _process(order, home) as (process, said, told):
        end = threading.Thread(target=_end_in_time, args=(process, order.timeout_seconds))
        end.start()
        try:
            told.write(_first_line(order))
            told.flush()
            heard = _listened(said, told, answer)
        except BrokenPipeError:
            heard = Recording(failure=_SILENCE)
        except BaseException:
            _end(process)
            raise
        finally:
            code = process.wait()
            end.join()
    if heard.failure is _SILENCE:
        return Recording(heard.runs, heard.notes, heard.files, _ended_early(order, code))
    return heard


def _end_in_time(process: subprocess.Popen[bytes], seconds: float) -> None:
    """A script that waits for something that never happens is ended; its last record is missing then."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With what it has forked: that would hold the line on which the script's words come."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


_SILENCE = Failure(Note("", "it ended without a word"))


def _ended_early(order: Order, code: int) -> Failure:
    if code < 0:
        message = (
            f"the script was still running after {order.timeout_seconds:g} s and was ended; if it needs longer, give "
            "--timeout SECONDS, and if it waits for a job, know that none is started"
        )
        return Failure(Note("", message))
    return Failure(Note("", f"the script's process ended with exit code {code}"))


def _first_line(order: Order) -> str:
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
def _process(order: Order, home: str) -> Iterator[tuple[subprocess.Popen[bytes], TextIO, TextIO]]:
    """The process, what it says, and what it is told. Its output goes where ours for people goes."""
    said, out = os.pipe()
    answers, told = os.pipe()
    program = _BEGIN.format(folder=str(_STAND_IN), out=out, answers=answers)
    with (
        os.fdopen(said, encoding="utf-8") as said_file,
        os.fdopen(told, "w", encoding="utf-8") as told_file,
        subprocess.Popen(
            [order.python, "-c", program],
            pass_fds=(out, answers),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            stdout=sys.stderr.fileno(),
            cwd=order.working_folder,
            # no home: what lies there, credentials first of all, is none of the script's business here
            env={**order.environment, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"},
        ) as process,
    ):
        os.close(out)
        os.close(answers)
        yield process, said_file, told_file


def _listened(said: TextIO, value: TextIO, answer: Answer) -> Recording:
    runs: list[EstimatorFit | TrainerRun] = []
    notes: list[Note] = []
    files: dict[str, str] = {}
    for line in said:
        match record(line):
            case EstimatorFit() | TrainerRun() as run:
                runs.append(run)
            case Note() as note:
                notes.append(note)
            case WrittenFile(path, append, text):
                files[path] = files.get(path, "") + text if append else text
            case Question(about):
                value.write(_answered(about, answer))
                value.flush()
            case Failure() as failure:
                return Recording(runs, notes, files, failure)
            case Done():
                return Recording(runs, notes, files)
    return Recording(runs, notes, files, _SILENCE)


def _answered(about: Mapping[str, str], answer: Answer) -> str:
    try:
        return json.dumps({"text": answer(about)}) + "\n"
    except NoAnswer as problem:
        return json.dumps({"problem": str(problem)}) + "\n"
