"""The digits as PNG files: the same ones each time, even if other processes prepare them, too."""

import hashlib
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from support.example_runs import EXAMPLES, finish, start

PREPARE = [sys.executable, str(EXAMPLES / "digits" / "prepare.py")]


def content(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_every_image_is_there_once_under_its_class(digits: Path) -> None:
    bundled = load_digits()
    images = {path.stem: path for path in digits.glob("*/*/*.png")}
    assert sorted(images) == [f"{index:04}" for index in range(1797)]
    assert len(list(digits.glob("*/*/*.png"))) == 1797
    assert sum(1 for _ in digits.glob("validation/*/*.png")) == 364
    for index in (0, 1, 900, 1796):
        path = images[f"{index:04}"]
        assert path.parent.name == str(bundled.target[index])
        with Image.open(path) as image:
            assert np.array_equal(np.rint(np.asarray(image) / 255 * 16), bundled.images[index])


def test_each_class_has_a_fifth_in_validation(digits: Path) -> None:
    for label in range(10):
        training = sum(1 for _ in digits.glob(f"train/{label}/*.png"))
        validation = sum(1 for _ in digits.glob(f"validation/{label}/*.png"))
        assert 0.19 < validation / (training + validation) < 0.22


def test_two_preparations_at_once_make_one_good_set(digits: Path, tmp_path: Path) -> None:
    rivals = [start([*PREPARE, str(tmp_path / "shared")], {}) for _ in range(2)]
    for rival in rivals:
        end = finish(rival)
        assert end.exit_code == 0, end.messages
        assert "1433 images" in end.output
    assert content(tmp_path / "shared") == content(digits)
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["train", "validation"]


def test_what_is_there_is_left_alone_and_what_is_missing_is_added(digits: Path, tmp_path: Path) -> None:
    mine = tmp_path / "train" / "0" / "mine.png"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    end = finish(start([*PREPARE, str(tmp_path)], {}))
    assert end.exit_code == 0, end.messages
    assert content(tmp_path / "train") == {"0/mine.png": hashlib.sha256(b"mine").hexdigest()}
    assert content(tmp_path / "validation") == content(digits / "validation")
