"""Write an MPI job from the pods of a launcher and of workers. muster runs mpirun on node 0, a worker. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON, quote
from muster.api.validation.rules.mpi.rules import is_mpirun
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.environment import Environment, read_environment
from muster.importers.kubernetes.job_builder import write_launch
from muster.importers.kubernetes.launch.container_command import ContainerCommand, read_command, report_references
from muster.importers.kubernetes.launch.mpirun import MpiWorld, find_mpi_launch
from muster.importers.kubernetes.launch.procs import Procs
from muster.importers.kubernetes.launch.shell_script import NotSimple, Word, find_script, split_script
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.pod_template import PodTemplate
from muster.importers.kubernetes.pods import write_pods
from muster.importers.kubernetes.references import resolve_variable
from muster.importers.kubernetes.report import Location, Report

_WORKER_PROGRAMS = ("sshd", "sleep", "mkdir", "chmod", "chown", "exec")
"""What workers run while they wait for mpirun, which muster's agents replace."""

_LAUNCHER_PROGRAMS = ("sshd", "mkdir", "set")
"""What a launcher's script may run before mpirun without an effect on the ranks."""

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

_SILENT_FIELDS = ("command", "args", "name", "env", "image", "containers", "restartPolicy")
"""Fields of the launcher that other code translates."""

_LAUNCHER_FIELDS = ("resources", "ports", "command", "args", "name", "env", "image", "imagePullPolicy")
_LAUNCHER_PROBES = (*_PROBES, "tty", "stdin", "terminationMessagePolicy")
_PLACEMENT_FIELDS = ("containers", "restartPolicy", "nodeSelector", "affinity", "tolerations", "hostname", "subdomain")
_SCHEDULING_FIELDS = (
    "priorityClassName",
    "schedulerName",
    "terminationGracePeriodSeconds",
    "topologySpreadConstraints",
)


@dataclass(frozen=True)
class MpiJob:
    """The pods of an MPI job. `launcher` is the worker's template if there is no other.

    `index` is the position of the ranks' container in the workers' template, `launcher_index` that of mpirun's.
    """

    launcher: PodTemplate
    launcher_index: int
    worker: PodTemplate
    index: int
    nodes: int
    nodes_location: Location
    slots: int
    slots_location: Location
    implementation: str | None

    @property
    def container(self) -> Mapping[str, JSON]:
        return self.worker.containers[self.index]

    @property
    def launcher_container(self) -> Mapping[str, JSON]:
        return self.launcher.containers[self.launcher_index]

    @property
    def launcher_location(self) -> Location:
        return self.launcher.pod_location.child("containers", self.launcher_index)

    @property
    def worker_location(self) -> Location:
        return self.worker.pod_location.child("containers", self.index)


def write_mpi_job(draft: Draft, job: MpiJob, report: Report) -> bool:
    """Write the pods, the launcher and the command; return whether they are complete."""
    environment = read_environment(job.container, job.worker_location, report, is_mpi=True)
    if job.launcher is not job.worker:
        _check_launcher(job, report)
        _check_worker_command(job, report)
        _drop_probes(job, report)
        own_environment = read_environment(job.launcher_container, job.launcher_location, report, is_mpi=True)
        environment = _merge(environment, own_environment, report)
    write_pods(draft, job.worker, job.index, environment, report)
    command = read_command(
        job.launcher_container, job.launcher.locate_field(job.launcher_index, "command"), environment, report
    )
    words = None if command is None else _find_mpirun(command, report)
    if command is None or words is None or report_references([word.text for word in words], command, report):
        return False
    mpi_world = MpiWorld(job.nodes, job.slots, job.implementation)
    launch = find_mpi_launch(words, mpi_world, command.location, report)
    if launch is None:
        return False
    world = World(job.nodes, job.nodes_location, Procs(job.slots, job.slots_location), {})
    write_launch(draft, launch, world, command.location)
    return True


def _find_mpirun(command: ContainerCommand, report: Report) -> list[Word] | None:
    """Return the words of the only mpirun; None with a problem."""
    line = find_script(command.words)
    if line is None:
        words = [Word(word, expands=False) for word in command.words]
        if is_mpirun(words[0].text):
            return words
        report.add(command.location, f"found {quote(command.words[0])}; mpirun with its program is expected")
        return None
    try:
        commands = split_script(line.script)
    except NotSimple:
        report.add(
            command.location,
            "found a script with more than simple commands; muster runs mpirun itself: write mpirun with its program",
        )
        return None
    remaining = [words for words in commands if not _is_preparation(words, report, command.location)]
    if len(remaining) == 1:
        texts = command.environment.texts
        words = [Word(text, word.expands and text == word.text) for word, text in _resolve(remaining[0], texts)]
        words = words[1:] if words[0].text == "exec" else words
        if words and is_mpirun(words[0].text):
            return words
    report.add(
        command.location,
        "found a script with other commands than one mpirun; muster runs mpirun itself: write mpirun with its program, "
        "and move the rest to the image or to an init container",
    )
    return None


def _resolve(words: tuple[Word, ...], texts: Mapping[str, str | None]) -> list[tuple[Word, str]]:
    return [(word, resolve_variable(word.text, texts) if word.expands else word.text) for word in words]


def _is_preparation(words: tuple[Word, ...], report: Report, location: Location) -> bool:
    program = posixpath.basename(words[0].text)
    name, equals, _ = words[0].text.partition("=")
    is_host_list = bool(equals) and len(words) == 1 and "HOST" in name
    if program in _LAUNCHER_PROGRAMS or is_host_list:
        report.note(location, f"{words[0].text}: not needed, because muster starts mpirun and connects the nodes")
        return True
    return False


def _check_worker_command(job: MpiJob, report: Report) -> None:
    words = [
        str(word)
        for name in ("command", "args")
        for value in [job.container.get(name)]
        for word in (value if isinstance(value, list) else [])
    ]
    if not words:
        return
    location = job.worker_location.child("command" if job.container.get("command") else "args")
    line = find_script(words)
    try:
        programs = [words[0]] if line is None else [command[0].text for command in split_script(line.script)]
    except NotSimple:
        programs = ["a script with more than simple commands"]
    other_programs = [program for program in programs if posixpath.basename(program) not in _WORKER_PROGRAMS]
    if other_programs and job.container.get("command") is not None:
        report.add(
            location,
            f"found {quote(other_programs[0])}; muster's workers run only the ranks, whose command is the launcher's: "
            "move the rest to the image or to an init container",
        )
    else:
        report.note(location, "not needed: muster's agents start the ranks without ssh")


def _drop_probes(job: MpiJob, report: Report) -> None:
    """Drop the workers' probes, which would find no sshd."""
    containers = job.worker.pod.get("containers")
    container = containers[job.index] if isinstance(containers, list) else None
    for name in _PROBES:
        if isinstance(container, dict) and container.pop(name, None) is not None:
            report.note(job.worker_location.child(name), "it would find no sshd, which muster doesn't need")


def _check_launcher(job: MpiJob, report: Report) -> None:
    """Check that nothing of the launcher's pod is lost: muster runs mpirun in a worker's pod."""
    image, worker_image = job.launcher_container.get("image"), job.container.get("image")
    if image != worker_image:
        report.add(
            job.launcher_location.child("image"),
            f"found {quote(str(image))} beside the workers' {quote(str(worker_image))}; muster runs mpirun in the "
            "workers' pods: use one image",
        )
    _compare_fields(
        job.launcher_container,
        job.container,
        job.launcher_location,
        (*_LAUNCHER_FIELDS, *_LAUNCHER_PROBES),
        report,
    )
    _compare_fields(
        job.launcher.pod, job.worker.pod, job.launcher.pod_location, (*_PLACEMENT_FIELDS, *_SCHEDULING_FIELDS), report
    )
    if len(job.launcher.containers) > 1:
        report.add(job.launcher.pod_location.child("containers"), "found sidecars; move them to the workers' template")
    if job.launcher.labels or job.launcher.annotations:
        report.note(job.launcher.location.child("metadata"), "muster has no launcher pod: mpirun runs on node 0")


def _compare_fields(
    launcher: Mapping[str, JSON],
    worker: Mapping[str, JSON],
    location: Location,
    ignored: tuple[str, ...],
    report: Report,
) -> None:
    for name, value in launcher.items():
        if name in ignored:
            if name not in _SILENT_FIELDS and value != worker.get(name):
                report.note(location.child(name), "muster has no launcher pod: mpirun runs on node 0, a worker")
        elif value != worker.get(name):
            report.add(
                location.child(name),
                "differs from the workers' field; muster runs mpirun in a worker's pod: write it in the workers' "
                "template, or remove it",
            )


def _merge(worker: Environment, launcher: Environment, report: Report) -> Environment:
    """Return the variables of both, because the ranks and mpirun run in one pod."""
    own_entries = {str(entry.get("name")): entry for entry in worker.kept}
    kept, locations = list(worker.kept), list(worker.locations)
    for entry, location in zip(launcher.kept, launcher.locations, strict=True):
        name = str(entry.get("name"))
        if name not in own_entries:
            kept.append(entry)
            locations.append(location)
        elif own_entries[name] != entry:
            report.add(location, f"found {name} with another value than the workers'; a job has one value: remove one")
    return Environment(
        kept=tuple(kept),
        locations=tuple(locations),
        texts={**worker.texts, **launcher.texts},
        torchrun_options={},
        has_rendezvous=False,
        has_sources=worker.has_sources or launcher.has_sources,
    )
