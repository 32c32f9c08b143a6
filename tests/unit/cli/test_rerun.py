"""What `muster rerun` sends, when it is done, and which files it packs or leaves out."""

import io
import os
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.names import RESTART_ANNOTATION, SOURCE_ANNOTATION
from muster.api.status.restarts import RestartRequest
from muster.api.status.source import SourceStatus
from muster.api.status.status import Condition, RankStatus, Status
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.rerun import delete_unused, make_rerun
from muster.cli.jobs.source_files import PackedSource, check_script, pack_source
from muster.objects.kubernetes.kinds import Object
from muster_worker.contract.source import MAX_SOURCE_BYTES, MAX_SOURCE_FILES

VALUE = "2026-11-23T13:30:00.123Z"
PACKED = PackedSource(b"x", "a" * 64, frozenset({"train.py"}))
NAME = "vit-source-aaaaaaaaaaaaaaaa"
RUNS = Status(
    observed_generation=3,
    phase="Running",
    attempt=1,
    start_time="2026-11-23T13:00:00Z",
    ranks=RankStatus(world=4, running=4, ready="4/4"),
)


def resource(status: Status = RUNS, **spec: JSON) -> Object:
    metadata: dict[str, JSON] = {"name": "vit", "uid": "u-1", "generation": 3}
    return {"metadata": metadata, "spec": spec, "status": serialise_status(status)}


def observed(**changes: object) -> ObservedJob:
    return read_observed_job(resource(RUNS.model_copy(update=changes)))


def refused(name: str) -> tuple[Condition, ...]:
    message = f"The resource is valid; {SOURCE_ANNOTATION}: ConfigMap {name} can't be used: it is not immutable"
    return (Condition(type="Accepted", status="True", reason="x", message=message, last_transition_time=VALUE),)


def test_a_rerun_names_its_code_beside_the_request() -> None:
    change = make_rerun(resource(), VALUE, PACKED)
    assert change.fields == {"metadata": {"annotations": {RESTART_ANNOTATION: VALUE, SOURCE_ANNOTATION: NAME}}}
    served, source = RestartRequest(value=VALUE), SourceStatus(config_map=NAME, sha256="a" * 64)
    assert not change.is_done(observed(restart_request=served))
    assert not change.is_done(observed(source=source))
    assert change.is_done(observed(restart_request=served, source=source))

    original = make_rerun(resource(), VALUE, None)
    assert original.fields == {"metadata": {"annotations": {RESTART_ANNOTATION: VALUE, SOURCE_ANNOTATION: None}}}
    assert original.is_done(observed(restart_request=served))
    assert not original.is_done(observed(restart_request=served, source=source))


def test_the_command_ends_when_the_operator_refuses_its_code() -> None:
    change = make_rerun(resource(), VALUE, PACKED)
    assert "it is not immutable" in (change.find_refusal(observed(conditions=refused(NAME))) or "")
    assert change.find_refusal(observed(conditions=refused("vit-source-b"))) is None
    before = RUNS.model_copy(update={"conditions": refused(NAME)})
    assert make_rerun(resource(before), VALUE, PACKED).find_refusal(read_observed_job(resource(before))) is None


def test_the_command_ends_when_the_same_code_is_refused_again() -> None:
    before = RUNS.model_copy(update={"conditions": refused(NAME)})
    change = make_rerun(resource(before), VALUE, PACKED)
    for value, is_refused in (("an earlier request", False), (VALUE, True)):
        job = before.model_copy(update={"restart_request": RestartRequest(value="", refused_value=value)})
        assert (change.find_refusal(read_observed_job(resource(job))) is not None) is is_refused


@dataclass
class Cluster:
    """An API server with a job and ConfigMaps. `deleted` are the names of those that were deleted."""

    job: Object
    deleted: list[str] = field(default_factory=list)

    async def get(self, _: web.Request) -> web.Response:
        return web.json_response(self.job)

    async def delete(self, request: web.Request) -> web.Response:
        self.deleted.append(request.match_info["name"])
        return web.json_response({})


@pytest.mark.parametrize(
    ("annotation", "running", "deleted"),
    [
        (NAME, NAME, ["vit-source-b", "vit-source-c"]),
        # Another rerun has begun meanwhile, and the ranks still run the code of this one.
        ("vit-source-b", NAME, ["vit-source-c"]),
        (None, "vit-source-c", [NAME, "vit-source-b"]),
        (None, None, [NAME, "vit-source-b", "vit-source-c"]),
    ],
)
async def test_code_that_the_job_uses_is_not_deleted(
    annotation: str | None, running: str | None, deleted: list[str], tmp_path: Path
) -> None:
    source = None if running is None else SourceStatus(config_map=running, sha256="a" * 64)
    job = resource(RUNS.model_copy(update={"source": source}))
    read_mapping(job["metadata"])["annotations"] = {} if annotation is None else {SOURCE_ANNOTATION: annotation}
    cluster, app = Cluster(job), web.Application()
    app.router.add_get("/apis/muster.dev/v1alpha1/namespaces/team/{kind}/vit", cluster.get)
    app.router.add_delete("/api/v1/namespaces/team/configmaps/{name}", cluster.delete)
    stored: list[Object] = [
        {"metadata": {"name": name, "uid": name}} for name in (NAME, "vit-source-b", "vit-source-c")
    ]
    async with api_client(app, tmp_path) as client:
        await delete_unused(ClusterJob(client, "team", "vit"), stored)
    assert cluster.deleted == deleted


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (resource(backend="SageMaker"), "change spec.source"),
        (resource(suspend=True), "is suspended"),
        (resource(Status()), "have not started yet"),
    ],
)
def test_a_job_that_can_t_run_other_code_is_refused(job: Object, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        make_rerun(job, VALUE, PACKED)


def contents(packed: PackedSource) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(packed.archive)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in files.items() if file is not None}


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_a_folder_is_packed_without_what_is_hidden_or_leads_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    write(folder, "train.py", "lib/part.py", ".venv/x.py", "__pycache__/train.pyc", ".env", "bad\nname")
    write(tmp_path, "secret")
    (folder / "inside.py").symlink_to("lib/part.py")
    (folder / "outside.py").symlink_to(tmp_path / "secret")
    (folder / "data").symlink_to(tmp_path)
    (folder / "nothing").symlink_to("missing")
    os.mkfifo(folder / "pipe")
    packed = pack_source(folder)
    assert contents(packed) == {"train.py": b"train.py", "lib/part.py": b"lib/part.py", "inside.py": b"lib/part.py"}
    assert packed.paths == set(contents(packed))
    assert [sentence.partition(" is left out: ")[2] for sentence in packed.skipped_files] == [
        "it contains an invisible character or a \\",
        "it is a link to something outside the folder",
        "it is not a regular file",
        "it is a link to something outside the folder",
        "it is not a regular file",
    ]
    (folder / "train.py").touch()
    assert pack_source(folder) == packed


def test_in_a_repository_git_decides(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "new.py", "old.py", "runs/log.txt", ".hidden/a.py")
    (tmp_path / ".gitignore").write_text("runs/\n")
    for arguments in (("init", "-q"), ("add", "train.py", "old.py", ".gitignore")):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    (tmp_path / "old.py").unlink()
    assert set(contents(pack_source(tmp_path))) == {".gitignore", ".hidden/a.py", "new.py", "train.py"}


def test_a_folder_that_git_ignores_is_not_sent(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "credentials.json")
    (tmp_path / ".gitignore").write_text("*\n")
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    with pytest.raises(BadInput, match="the folder has no files that git does not ignore"):
        pack_source(tmp_path)


def test_links_that_lead_to_each_other_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "train.py")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    packed = pack_source(tmp_path)
    assert set(contents(packed)) == {"train.py"}
    assert len(packed.skipped_files) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every folder")
def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "dark/model.py")
    (tmp_path / "dark").chmod(0)
    try:
        with pytest.raises(BadInput, match="dark can't be read: Permission denied"):
            pack_source(tmp_path)
    finally:
        (tmp_path / "dark").chmod(0o700)


def test_a_file_is_the_whole_code(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "other.py")
    assert contents(pack_source(tmp_path / "train.py")) == {"train.py": b"train.py"}


def test_too_much_is_refused_with_the_largest_files(tmp_path: Path) -> None:
    write(tmp_path, "train.py")
    (tmp_path / "weights.bin").write_bytes(os.urandom(MAX_SOURCE_BYTES))
    with pytest.raises(BadInput, match=r"too large .* The largest: weights.bin \(512 KiB\), train.py"):
        pack_source(tmp_path)
    (tmp_path / "weights.bin").unlink()
    write(tmp_path, *(f"many/{number}" for number in range(MAX_SOURCE_FILES)))
    with pytest.raises(BadInput, match="at most 2000 files"):
        pack_source(tmp_path)


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=name):
        pack_source(tmp_path / name)


@pytest.mark.parametrize(
    ("command", "paths", "is_right"),
    [
        (("python", "train.py"), {"train.py"}, True),
        (("python", "./train.py"), {"train.py"}, True),
        (("python", "scripts/train.py"), {"train.py"}, False),
        (("python3", "-u", "/app/train.py", "--x"), {"train.py"}, True),
        (("python", "/app/scripts/train.py"), {"app/scripts/train.py"}, True),
        (("python", "/app/train.py"), {"main.py"}, False),
        (("python", "-m", "vit.train"), {"main.py"}, True),
        (("bash", "run.sh"), {"main.py"}, True),
        ((), {"main.py"}, True),
    ],
)
def test_the_script_of_the_command_has_to_be_in_the_source(
    tmp_path: Path,
    command: tuple[str, ...],
    paths: set[str],
    is_right: bool,  # noqa: FBT001 - a row of the table
) -> None:
    write(tmp_path, *paths)
    for name in paths:
        (tmp_path / name).write_text("x = 1")
    packed = pack_source(tmp_path)
    if is_right:
        check_script(tmp_path, packed, command)
    else:
        with pytest.raises(BadInput, match=r"has no .*train\.py"):
            check_script(tmp_path, packed, command)


def test_a_script_with_a_syntax_error_is_not_sent(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ok')\nif True print()\n")
    for source in (tmp_path, script):
        with pytest.raises(BadInput, match=r"train.py can't be compiled: .*line 2"):
            check_script(source, pack_source(source), ["python", "train.py"])
    script.write_bytes(b"\0")
    with pytest.raises(BadInput, match="can't be compiled"):
        check_script(tmp_path, pack_source(tmp_path), ["python", "/app/train.py"])
