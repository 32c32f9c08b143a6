import ipaddress
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.spec.job import Job
from muster.backends.local.devices import find_machine_gpus, resolve_local_procs_per_node, split_gpus
from muster.backends.local.folders import MissingFolder, find_folders, link_channels
from muster.backends.local.hosts import derive_node_address, render_hosts_file
from muster.backends.local.layout import RunLayout, make_folders, run_folder
from muster.backends.local.scratch import Scratch
from muster.cli.run.local_job import resolve_job
from muster.core.world import count_nodes_and_spares
from support.valid_jobs import make_job


def job(**spec: object) -> Job:
    return make_job("vit", {"launcher": {"direct": {}}, "command": ["train"], **spec})  # type: ignore[dict-item]


@given(st.uuids(), st.integers(0, 9999))
def test_every_node_has_a_loopback_address_of_its_own(uid: object, node: int) -> None:
    address = ipaddress.ip_address(derive_node_address(str(uid), node))
    assert address.is_loopback
    assert address not in ipaddress.ip_network("127.0.0.0/16")
    assert int(address) == int(ipaddress.ip_address(derive_node_address(str(uid), 0))) + node


def test_the_runs_names_stand_before_the_machines() -> None:
    first, second = derive_node_address("u", 0), derive_node_address("u", 1)
    assert render_hosts_file("u", "vit", 2, "127.0.0.1 localhost\n") == (
        f"{first} algo-1 vit-0\n{second} algo-2 vit-1\n127.0.0.1 localhost\n"
    )


def test_gpus_are_those_that_the_user_lets_be_seen(tmp_path: pathlib.Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "null"):
        (tmp_path / name).touch()
    assert find_machine_gpus({}, tmp_path) == ("0", "1")
    assert find_machine_gpus({"CUDA_VISIBLE_DEVICES": "3, GPU-abc"}, tmp_path) == ("3", "GPU-abc")
    assert find_machine_gpus({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()
    assert find_machine_gpus({}, tmp_path / "nowhere") == ()


def test_gpus_are_split_equally() -> None:
    assert split_gpus(("0", "1", "2", "3"), 2) == (("0", "1"), ("2", "3"))
    assert split_gpus(("0", "1", "2"), 2) == (("0",), ("1",))
    assert split_gpus(("0",), 3) == (("0",), ("0",), ("0",))
    assert split_gpus((), 2) == ((), ())


def test_auto_means_the_gpus_of_a_node() -> None:
    assert resolve_local_procs_per_node(job(nodes=2), 8).spec.procs_per_node == 4
    assert resolve_local_procs_per_node(job(nodes=2), 0).spec.procs_per_node == 1
    assert resolve_local_procs_per_node(job(nodes=2, procsPerNode=3), 8).spec.procs_per_node == 3


def test_an_elastic_job_divides_the_gpus_among_the_nodes_that_it_starts() -> None:
    elastic = resolve_job(job(nodes=2, elastic={"minNodes": 1, "maxNodes": 8}, failurePolicy={}), 8)
    assert elastic.spec.procs_per_node == 4
    assert count_nodes_and_spares(elastic) == 2


def test_nodes_share_model_output_and_checkpoints(tmp_path: pathlib.Path) -> None:
    layout = RunLayout(tmp_path / "run", tmp_path / "private", "vit")
    make_folders(layout, 2, None)
    make_folders(layout, 2, None)
    (layout.get_node(0).root / "model" / "weights").write_text("w")
    assert (layout.get_node(1).root / "model" / "weights").read_text() == "w"
    assert (layout.model / "weights").read_text() == "w"
    assert (layout.get_node(1).root / "checkpoints").resolve() == layout.checkpoints.resolve()
    assert layout.get_node(0).run.stat().st_mode & 0o777 == 0o700


def test_snapshots_may_lie_elsewhere(tmp_path: pathlib.Path) -> None:
    layout = RunLayout(tmp_path / "run", tmp_path / "private", "vit")
    make_folders(layout, 1, tmp_path / "mine")
    assert (layout.get_node(0).root / "checkpoints").resolve() == (tmp_path / "mine").resolve()
    assert not layout.checkpoints.exists()


def test_a_runs_folder_tells_the_job() -> None:
    assert run_folder(pathlib.Path("/w"), "vit", "0123456789ab") == pathlib.Path("/w/muster-runs/vit-01234567")


def test_channels_appear_under_every_node(tmp_path: pathlib.Path) -> None:
    data, mine = tmp_path / "data", tmp_path / "mine"
    data.mkdir()
    mine.mkdir()
    inputs = [{"name": name, "volume": {"hostPath": {"path": str(data)}}} for name in ("train", "test")]
    folders = find_folders(job(inputs=inputs), {"test": mine}, None)
    layout = RunLayout(tmp_path / "run", tmp_path / "private", "vit")
    make_folders(layout, 2, folders.checkpoints)
    link_channels(layout, 2, folders)
    link_channels(layout, 2, folders)
    assert (layout.get_node(1).channels / "train").resolve() == data.resolve()
    assert (layout.get_node(1).channels / "test").resolve() == mine.resolve()


def test_what_is_missing_is_named_with_its_remedy(tmp_path: pathlib.Path) -> None:
    inputs = [{"name": "train", "volume": {"hostPath": {"path": "/nowhere/at/all"}}}]
    with pytest.raises(MissingFolder) as missing:
        find_folders(job(inputs=inputs), {}, None)
    assert str(missing.value) == (
        "spec.inputs[0].volume.hostPath.path: /nowhere/at/all does not exist; "
        "create it, or read from another folder with --input train=DIR"
    )
    with pytest.raises(MissingFolder, match=r"--input train: .*/gone does not exist"):
        find_folders(job(inputs=inputs), {"train": tmp_path / "gone"}, None)
    with pytest.raises(MissingFolder, match="the job has no input 'tran'; it has train"):
        find_folders(job(inputs=inputs), {"tran": tmp_path}, None)
    checkpoint = {"volume": {"hostPath": {"path": "/nowhere/ckpt"}}}
    with pytest.raises(MissingFolder, match=r"spec\.checkpoint\.volume\.hostPath\.path: .* --checkpoint DIR"):
        find_folders(job(checkpoint=checkpoint), {}, None)


def test_a_clusters_volume_needs_a_folder_here(tmp_path: pathlib.Path) -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    claimed = job(inputs=[{"name": "train", "volume": claim}], checkpoint={"volume": claim})
    with pytest.raises(MissingFolder, match=r"spec\.inputs\[0\]\.volume: .* with --input train=DIR"):
        find_folders(claimed, {}, None)
    assert find_folders(claimed, {"train": tmp_path}, None).checkpoints is None
    assert find_folders(claimed, {"train": tmp_path}, tmp_path).checkpoints == tmp_path


def test_the_private_folder_goes_with_its_run(tmp_path: pathlib.Path) -> None:
    with Scratch(tmp_path) as one:
        with Scratch(tmp_path) as other:
            assert one.folder.is_dir()
            assert one.folder != other.folder
            assert one.folder.stat().st_mode & 0o777 == 0o700
        assert one.folder.is_dir()
        assert not other.folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_goes_with_the_next_one(tmp_path: pathlib.Path) -> None:
    killed = tmp_path / "muster-killed"
    killed.mkdir()
    (killed / "muster-run.lock").touch()
    (tmp_path / "muster-of-somebody-else").mkdir()
    (tmp_path / "muster-of-somebody-else" / "lock").touch()
    with Scratch(tmp_path):
        assert not killed.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["muster-of-somebody-else"]
