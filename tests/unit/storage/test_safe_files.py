from __future__ import annotations

import os
from pathlib import Path

import pytest

from muster.storage.s3.upload import list_files
from muster.storage.safe_files import move_into, pin_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a rank's folder, beside a secret and another folder."""
    (tmp_path / "token").write_text("secret", encoding="utf-8")
    (tmp_path / "others").mkdir()
    (tmp_path / "ranks").mkdir()
    return tmp_path / "ranks"


def test_a_file_stays_what_it_was_when_a_link_takes_its_place(folder: Path) -> None:
    file = folder / "weights"
    file.write_text("weights", encoding="utf-8")
    with pin_file(folder, "weights") as there:
        file.unlink()
        file.symlink_to(folder.parent / "token")
        assert there.read_text(encoding="utf-8") == "weights"


@pytest.mark.parametrize("link", ["../token", "/proc/self/environ", "others/../../token", "weights"])
def test_links_that_lead_out_are_not_followed(folder: Path, link: str) -> None:
    (folder / "weights").symlink_to(link)
    with pytest.raises(OSError), pin_file(folder, "weights"):  # noqa: PT011 - the system's own
        pass


def test_links_that_stay_below_are(folder: Path) -> None:
    (folder / "step-7").mkdir()
    (folder / "step-7" / "weights").write_text("weights", encoding="utf-8")
    (folder / "latest").symlink_to("step-7/weights")
    with pin_file(folder, "latest") as there:
        assert there.read_text(encoding="utf-8") == "weights"


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "weights")
    with pytest.raises(FileNotFoundError), pin_file(folder, "weights"):
        pass


def test_nothing_is_put_behind_a_link(folder: Path) -> None:
    part = folder.parent / "part"
    part.write_text("evil", encoding="utf-8")
    (folder / "step-7").symlink_to(folder.parent / "others")
    with pytest.raises(OSError):  # noqa: PT011 - the system's own
        move_into(part, folder, "step-7/weights")
    assert not list((folder.parent / "others").iterdir())


def test_a_link_in_a_files_place_is_replaced(folder: Path) -> None:
    part, secret = folder.parent / "part", folder.parent / "token"
    part.write_text("weights", encoding="utf-8")
    (folder / "weights").symlink_to(secret)
    move_into(part, folder, "weights")
    assert not (folder / "weights").is_symlink()
    assert secret.read_text(encoding="utf-8") == "secret"


def test_folders_between_are_made(folder: Path) -> None:
    part = folder.parent / "part"
    part.write_text("weights", encoding="utf-8")
    move_into(part, folder, "a/b/weights")
    assert (folder / "a" / "b" / "weights").read_text(encoding="utf-8") == "weights"


def test_links_in_a_circle_are_no_files(folder: Path) -> None:
    (folder / "weights").write_text("weights", encoding="utf-8")
    (folder / "circle").symlink_to("circle")
    assert [file.path for file in list_files(folder)] == ["weights"]
