"""Objects of S3 as files: complete, in shares, and after any interruption."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes.breaking_proxy import breaking_proxy
from fakes.generated_s3 import generated_s3
from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import StorageError
from muster.render.storage.objects import FileObject, to_file_objects
from muster.render.storage.storage_plan import S3Channel, StoragePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_download import download_node
from muster.storage.node_folders import make_node_folders
from muster.storage.s3 import download
from muster.storage.s3.bucket import CONNECTIONS, Bucket, make_s3_client
from muster.storage.s3.download import DownloadFolders, download_objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FIELD = "spec.inputs[0].s3.uri"
TRAIN = S3Uri("data", "train/")


def _bucket(client: S3Client) -> Bucket:
    return Bucket(client, "data", FIELD)


def _listed(client: S3Client, uri: S3Uri = TRAIN) -> tuple[FileObject, ...]:
    return to_file_objects(list(_bucket(client).list_objects(uri.key)), uri, FIELD)


def _into(folder: Path) -> DownloadFolders:
    return DownloadFolders(folder / "data", folder / "records")


def _files(folder: Path) -> dict[str, bytes]:
    root = folder / "data"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _nothing(_: float) -> None:
    pass


def test_objects_become_files_and_are_not_fetched_twice(s3: S3Client, tmp_path: Path) -> None:
    content = {"a.txt": b"a", "x/b.bin": bytes(1000), "empty": b""}
    for path, data in content.items():
        s3.put_object(Bucket="data", Key=f"train/{path}", Body=data)
    value: list[int] = []
    assert download_objects(_bucket(s3), _listed(s3), _into(tmp_path), _nothing, value.append) == 3
    assert (_files(tmp_path), sum(value)) == (content, 1001)
    assert download_objects(_bucket(s3), _listed(s3), _into(tmp_path), _nothing, value.append) == 0
    s3.put_object(Bucket="data", Key="train/a.txt", Body=b"z")
    (tmp_path / "data" / "empty").unlink()
    assert download_objects(_bucket(s3), _listed(s3), _into(tmp_path), _nothing, value.append) == 2
    assert _files(tmp_path) == {**content, "a.txt": b"z"}


def test_a_large_object_goes_on_where_it_was_interrupted(
    s3: S3Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RANGE_BYTES", 64 * 1024)
    data = os.urandom(1_000_000)
    s3.put_object(Bucket="data", Key="train/weights", Body=data)
    listed, value = _listed(s3), list[int]()

    class Cut(Exception):
        pass

    def cut(count: int) -> None:
        value.append(count)
        if sum(value) > 300_000:
            raise Cut

    with pytest.raises(Cut):
        download_objects(_bucket(s3), listed, _into(tmp_path), _nothing, cut)
    assert _files(tmp_path) == {}
    before = sum(value)
    value.clear()
    download_objects(_bucket(s3), listed, _into(tmp_path), _nothing, value.append)
    assert _files(tmp_path) == {"weights": data}
    # existing files count at once, and together with the downloaded ones they are all files
    assert value[0] >= before - 16 * 64 * 1024
    assert (sum(value), value[0] > 0) == (len(data), True)
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["fetched.jsonl"]


def test_what_was_overwritten_meanwhile_is_fetched_anew(
    s3: S3Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RANGE_BYTES", 1000)
    s3.put_object(Bucket="data", Key="train/a", Body=b"1" * 5000)
    listed = _listed(s3)
    s3.put_object(Bucket="data", Key="train/a", Body=b"2" * 5000)
    with pytest.raises(StorageError, match="overwritten") as caught:
        download_objects(_bucket(s3), listed, _into(tmp_path), _nothing, _nothing)
    assert caught.value.reason == "S3Changed"
    download_objects(_bucket(s3), _listed(s3), _into(tmp_path), _nothing, _nothing)
    assert _files(tmp_path) == {"a": b"2" * 5000}


def test_connections_that_break_cost_nothing_but_time(
    s3: S3Client, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RANGE_BYTES", 100_000)
    data = {f"{number}": os.urandom(250_000) for number in range(6)}
    for name, content in data.items():
        s3.put_object(Bucket="data", Key=f"train/{name}", Body=content)
    listed = _listed(s3)
    with breaking_proxy(s3_url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.url)
        proxy.cuts = 12
        client = make_s3_client()
        download_objects(_bucket(client), listed, _into(tmp_path), _nothing, _nothing)
        client.close()
        assert proxy.cuts == 0
    assert _files(tmp_path) == data


def test_a_full_disk_is_explained(s3: S3Client, tmp_path: Path) -> None:
    s3.put_object(Bucket="data", Key="train/a", Body=b"1")
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(StorageError, match="can't be written") as caught:
        download_objects(_bucket(s3), _listed(s3), _into(tmp_path), _nothing, _nothing)
    assert caught.value.reason == "FolderUnusable"


def _plan(*channels: S3Channel, nodes: int = 1) -> StoragePlan:
    return StoragePlan("vit", nodes, channels)


def test_nodes_get_disjoint_shares_that_are_all_of_it(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    for number in range(10):
        s3.put_object(Bucket="data", Key=f"train/{number}", Body=b"x")
    s3.put_object(Bucket="data", Key="train/folder/", Body=b"")
    plan = _plan(S3Channel(0, "train", "s3://data/train", is_sharded=True), nodes=3)
    result = []
    for node in range(3):
        download_node(plan, node, make_node_folders(tmp_path / str(node)), None, dependencies)
        result.append(sorted(path.name for path in (tmp_path / str(node) / "input" / "train").iterdir()))
    assert result == [["0", "3", "6", "9"], ["1", "4", "7"], ["2", "5", "8"]]


def test_a_channel_without_data_is_no_channel(s3: S3Client, tmp_path: Path, dependencies: StorageDependencies) -> None:
    s3.put_object(Bucket="data", Key="training/a", Body=b"x")
    plan = _plan(S3Channel(2, "train", "s3://data/train/", is_sharded=False))
    with pytest.raises(StorageError) as caught:
        download_node(plan, 0, make_node_folders(tmp_path), None, dependencies)
    assert caught.value.reason == "S3NotFound"
    assert caught.value.message == 'spec.inputs[2].s3.uri: no key in bucket data begins with "train/"'


def test_a_key_that_would_leave_the_folder_is_refused_before_anything_is_fetched(
    s3: S3Client, tmp_path: Path, dependencies: StorageDependencies
) -> None:
    s3.put_object(Bucket="data", Key="train/a", Body=b"x")
    s3.put_object(Bucket="data", Key="train/../../escaped", Body=b"x")
    plan = _plan(S3Channel(0, "train", "s3://data/train/", is_sharded=False))
    with pytest.raises(StorageError) as caught:
        download_node(plan, 0, make_node_folders(tmp_path / "root"), None, dependencies)
    assert caught.value.reason == "S3KeysUnusable"
    assert not list(tmp_path.rglob("escaped"))
    assert not (tmp_path / "root" / "input" / "train" / "a").exists()


class _Download:
    """A process that downloads train/ from an S3 to a folder."""

    def __init__(self, url: str, root: Path) -> None:
        program = Path(__file__).with_name("download_process.py")
        environment = {**os.environ, "PYTHONPATH": str(program.parents[2])}
        command = [sys.executable, str(program), url, "s3://data/train/", str(root)]
        self._process = subprocess.Popen(command, env=environment)

    def kill_once(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert self._process.poll() is None
            time.sleep(0.01)
        self._process.kill()
        self._process.wait()

    def wait(self) -> int:
        return self._process.wait()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_objects_and_one_of_two_gigabytes_after_kills(tmp_path: Path) -> None:
    data, records = tmp_path / "input" / "train", tmp_path / "records" / "input" / "train"

    def files() -> int:
        return len(os.listdir(data)) if data.exists() else 0  # noqa: PTH208 - much faster

    def ranges() -> int:
        return sum(len(path.read_text().splitlines()) - 1 for path in records.glob("*.ranges"))

    with generated_s3(10_000, 2 * 2**30) as site:
        _Download(site.url, tmp_path).kill_once(lambda: files() > 1000)
        _Download(site.url, tmp_path).kill_once(lambda: files() > 5000)
        _Download(site.url, tmp_path).kill_once(lambda: ranges() > 10)
        here, before = files(), ranges()
        assert before > 10
        site.read_bytes.clear()
        assert _Download(site.url, tmp_path).wait() == 0
        # existing files are not downloaded again, except one that was killed between its download and its record
        read_again = [size for key, size in site.read_bytes if key == "train/weights"]
        assert sum(read_again) <= site.large - (before - 1) * download.RANGE_BYTES
        assert len(site.read_bytes) - len(read_again) <= 10_000 - here + CONNECTIONS
        assert files() == 10_001
        assert all((data / str(number)).read_text() == str(number) for number in range(10_000))
        with (data / "weights").open("rb") as file:
            assert hashlib.file_digest(file, "sha256").digest() == site.compute_digest()
    assert [path.name for path in records.iterdir() if path.suffix in (".ranges", ".part")] == []
