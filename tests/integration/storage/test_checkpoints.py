"""Snapshots and results between a node's folder and S3."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from urllib3 import HTTPResponse

from fakes.s3_server import read_objects
from muster.render.storage.errors import StorageError
from muster.render.storage.storage_plan import CodePlan, StoragePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_download import download_node
from muster.storage.node_folders import NodeFolders, make_node_folders
from muster.storage.node_sync import NodeSync
from muster.storage.sync_server import serve_sync

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

KEPT = StoragePlan("vit", 1, checkpoint="s3://data/ckpt", output="s3://data/out/")


def _node_sync(root: Path, dependencies: StorageDependencies, plan: StoragePlan = KEPT) -> tuple[NodeSync, NodeFolders]:
    folders = make_node_folders(root)
    for folder in (folders.checkpoints, folders.model, folders.output):
        folder.mkdir(parents=True, exist_ok=True)
    return NodeSync(plan, folders, dependencies), folders


def _old(file: Path, text: str, age: float = 60.0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (time.time() - age, time.time() - age))


def test_snapshots_are_brought_and_go_along(s3: S3Client, tmp_path: Path, dependencies: StorageDependencies) -> None:
    s3.put_object(Bucket="data", Key="ckpt/a/1.pt", Body=b"1")
    s3.put_object(Bucket="data", Key="ckpt2/x", Body=b"of another job")
    node_sync, folders = _node_sync(tmp_path, dependencies)
    download_node(KEPT, 0, folders, None, dependencies)
    assert [path.name for path in folders.checkpoints.rglob("*.pt")] == ["1.pt"]
    assert not (folders.checkpoints / "x").exists()
    _old(folders.checkpoints / "a" / "2.pt", "2")
    (folders.checkpoints / "a" / "3.pt").write_text("half of it")
    node_sync.upload_checkpoints()
    assert read_objects(s3, "data", "ckpt/") == {"ckpt/a/1.pt": b"1", "ckpt/a/2.pt": b"2"}
    node_sync.upload_all()
    assert read_objects(s3, "data", "ckpt/")["ckpt/a/3.pt"] == b"half of it"


def test_what_is_kept_already_is_not_uploaded_again(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies, said: list[str]
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies)
    _old(folders.checkpoints / "1.pt", "1")
    (folders.model / "m").write_text("m")
    node_sync.upload_all()
    kept = s3.head_object(Bucket="data", Key="ckpt/1.pt")["LastModified"]
    said.clear()
    node_sync.upload_all()
    # the sync server was restarted, and reads its record
    _node_sync(tmp_path, dependencies, StoragePlan("vit", 1, checkpoint="s3://data/ckpt"))[0].upload_all()
    assert said == []
    assert s3.head_object(Bucket="data", Key="ckpt/1.pt")["LastModified"] == kept
    _node_sync(tmp_path, dependencies, StoragePlan("vit", 1, checkpoint="s3://data/other"))[0].upload_all()
    assert read_objects(s3, "data", "other/") == {"other/1.pt": b"1"}


def test_ranks_that_start_anew_see_what_the_other_nodes_wrote(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    first, here = _node_sync(tmp_path / "0", dependencies)
    second, there = _node_sync(tmp_path / "1", dependencies)
    _old(here.checkpoints / "last.pt", "step 10")
    first.upload_all()
    second.download_checkpoints()
    assert (there.checkpoints / "last.pt").read_text() == "step 10"
    _old(here.checkpoints / "last.pt", "step 20")
    first.upload_all()
    second.download_checkpoints()
    second.download_checkpoints()
    assert (there.checkpoints / "last.pt").read_text() == "step 20"
    _old(there.checkpoints / "last.pt", "step 30", age=30)
    second.upload_all()
    first.download_checkpoints()
    assert (here.checkpoints / "last.pt").read_text() == "step 30"
    assert read_objects(s3, "data", "ckpt/") == {"ckpt/last.pt": b"step 30"}


def test_a_snapshot_that_names_others_comes_after_them(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies)
    for number in range(5):
        _old(folders.checkpoints / f"shard-{number}", "x", age=100 - number)
    _old(folders.checkpoints / "latest", "all five", age=50)
    node_sync.upload_all()
    written = s3.list_objects_v2(Bucket="data", Prefix="ckpt/")["Contents"]
    times = {entry["Key"]: entry["LastModified"] for entry in written}
    assert all(times["ckpt/latest"] >= at for at in times.values())
    assert len(times) == 6


def test_a_folder_is_walked_once_however_old_its_files_are(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies, StoragePlan("vit", 1, checkpoint="s3://data/ckpt"))
    for number in range(5):
        _old(folders.checkpoints / f"{number}", "x", age=100 - number)
    walks = 0
    is_over = False

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal walks
        if not is_over and event == "os.scandir" and str(arguments[0]) == str(folders.checkpoints.resolve()):
            walks += 1

    sys.addaudithook(hear)
    node_sync.upload_checkpoints()
    is_over = True
    assert len(read_objects(s3, "data", "ckpt/")) == 5
    assert walks == 1


def test_results_are_kept_below_the_jobs_name(s3: S3Client, tmp_path: Path, dependencies: StorageDependencies) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies, StoragePlan("vit", 1, output="s3://data/out"))
    (folders.model / "x").mkdir()
    (folders.model / "x" / "model.pt").write_text("m")
    (folders.model / "best.pt").symlink_to("x/model.pt")
    (folders.model / "token").symlink_to("/etc/hostname")
    (folders.output / "failure").write_text("f")
    node_sync.upload_all()
    assert read_objects(s3, "data") == {
        "out/vit/model/best.pt": b"m",
        "out/vit/model/x/model.pt": b"m",
        "out/vit/output/failure": b"f",
    }


def test_one_key_that_is_denied_keeps_no_other_file_from_s3(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies)
    _old(folders.checkpoints / ("x" * 200) / ("y" * 250) / ("z" * 250) / ("a" * 250) / ("b" * 250), "no key is so long")
    for number in range(6):
        (folders.model / f"{number}").write_text("m")
    (folders.output / "log").write_text("o")
    keys = (f"out/vit/model/{number}" for number in (1, 4))
    with _denied(dependencies, *keys), pytest.raises(StorageError, match="more than 1024 bytes") as caught:
        node_sync.upload_all()
    assert caught.value.reason == "FolderUnusable"
    assert len(read_objects(s3, "data", "out/vit/model/")) == 4
    assert list(read_objects(s3, "data", "out/vit/output/")) == ["out/vit/output/log"]


def test_a_denied_result_is_named_with_what_has_to_be_allowed(
    tmp_path: Path, dependencies: StorageDependencies
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies, StoragePlan("vit", 1, output="s3://data/out"))
    for name in ("a", "b", "c"):
        (folders.model / name).write_text("m")
    keys = (f"out/vit/model/{name}" for name in ("a", "b"))
    with _denied(dependencies, *keys), pytest.raises(StorageError) as caught:
        node_sync.upload_all()
    assert caught.value.reason == "S3AccessDenied"
    assert "spec.output.s3: s3:PutObject on s3://data/out/vit/model/" in caught.value.message
    assert "1 more of these files can't be uploaded either" in caught.value.message
    node_sync.upload_all()


@contextmanager
def _denied(dependencies: StorageDependencies, *keys: str) -> Iterator[None]:
    """Yield a policy that denies these keys, which moto's S3 lacks."""
    paths, events = {f"/data/{key}" for key in keys}, dependencies.get_s3_client().meta.events

    # botocore uses the returned value as the response, although its types do not declare this.
    def answer(request: AWSPreparedRequest, **_: object) -> Any:
        if urlsplit(request.url).path not in paths:
            return None
        body = BytesIO(b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
        return AWSResponse(request.url, 403, HTTPHeaders(), HTTPResponse(body, preload_content=False))

    events.register("before-send.s3", answer)
    yield
    events.unregister("before-send.s3", answer)


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        (StoragePlan("vit", 1, checkpoint="s3://nowhere/a"), "spec.checkpoint.s3"),
        (StoragePlan("vit", 1, output="s3://nowhere/a"), "spec.output.s3"),
    ],
)
def test_a_read_only_location_is_an_error_before_the_ranks_start(
    plan: StoragePlan, field: str, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    with pytest.raises(StorageError) as caught:
        download_node(plan, 0, make_node_folders(tmp_path), None, dependencies)
    assert caught.value.reason == "S3NotFound"
    assert caught.value.message.startswith(f"{field}: ")


def test_trying_to_write_leaves_nothing(s3: S3Client, tmp_path: Path, dependencies: StorageDependencies) -> None:
    download_node(KEPT, 0, make_node_folders(tmp_path), None, dependencies)
    assert read_objects(s3, "data") == {}
    assert s3.list_multipart_uploads(Bucket="data").get("Uploads", []) == []


def test_a_file_whose_name_s3_can_not_have_is_named(tmp_path: Path, dependencies: StorageDependencies) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies)
    (Path(os.fsdecode(os.fsencode(folders.model) + b"/\xff"))).write_text("x")
    with pytest.raises(StorageError, match="not UTF-8") as caught:
        node_sync.upload_all()
    assert caught.value.message.startswith("spec.output.s3: ")


def test_a_config_map_is_code(tmp_path: Path, dependencies: StorageDependencies) -> None:
    entries = tmp_path / "map" / "..2026"
    entries.mkdir(parents=True)
    (entries / "train.py").write_text("print(1)\n")
    (tmp_path / "map" / "..data").symlink_to("..2026")
    (tmp_path / "map" / "train.py").symlink_to("..data/train.py")
    plan = StoragePlan("vit", 1, code=CodePlan(config_map="code"))
    download_node(plan, 0, make_node_folders(tmp_path), tmp_path / "map", dependencies)
    assert {path.name: path.read_text() for path in (tmp_path / "code").iterdir()} == {"train.py": "print(1)\n"}
    with pytest.raises(StorageError, match="isn't on this machine"):
        download_node(plan, 0, make_node_folders(tmp_path), None, dependencies)


@contextmanager
def _served(node_sync: NodeSync, path: Path) -> Iterator[None]:
    reader, writer = os.pipe()
    thread = Thread(target=serve_sync, args=(node_sync, path, reader))
    thread.start()
    # The socket's file exists before the server accepts connections.
    while not _accepts_connections(path):
        time.sleep(0.005)
    try:
        yield
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)


def _accepts_connections(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _asked(path: Path, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as asker:
        asker.settimeout(30)
        asker.connect(str(path))
        asker.sendall(line)
        asker.shutdown(socket.SHUT_WR)
        return asker.makefile("rb").read()


def test_the_keeper_does_what_the_agent_asks_for(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies)
    s3.put_object(Bucket="data", Key="ckpt/1.pt", Body=b"1")
    with _served(node_sync, tmp_path / "socket"):
        assert _asked(tmp_path / "socket", b'{"ask": "refresh"}\n') == b"{}\n"
        assert (folders.checkpoints / "1.pt").read_text() == "1"
        for nonsense in (b"", b"\n", b"[]\n", b'{"ask": "rm"}\n', b"x" * 1000):
            assert _asked(tmp_path / "socket", nonsense) == b""
        (folders.model / "m").write_text("m")
        assert _asked(tmp_path / "socket", b'{"ask": "finish"}\n') == b"{}\n"
        assert read_objects(s3, "data", "out/") == {"out/vit/model/m": b"m"}


def test_the_keeper_says_what_went_wrong(tmp_path: Path, dependencies: StorageDependencies) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies, StoragePlan("vit", 1, output="s3://nowhere/x"))
    (folders.model / "m").write_text("m")
    with _served(node_sync, tmp_path / "socket"):
        answer = _asked(tmp_path / "socket", b'{"ask": "finish"}\n')
    assert answer.startswith(b'{"reason": "S3NotFound", "message": "spec.output.s3: ')


def test_a_keeper_that_is_sent_away_keeps_what_it_can(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    node_sync, folders = _node_sync(tmp_path, dependencies)
    with _served(node_sync, tmp_path / "socket"):
        (folders.checkpoints / "1.pt").write_text("1")
    assert read_objects(s3, "data") == {"ckpt/1.pt": b"1"}
