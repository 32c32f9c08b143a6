"""The digits as PNG files: the same ones each time, even if other processes prepare them, too."""

import hashlib
import runpy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.example_runs import EXAMPLES

Prepare = Callable[[Path], None]


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Run the script's main function in this process: a new process would import scikit-learn for seconds."""
    main = runpy.run_path(str(EXAMPLES / "digits" / "prepare.py"))["main"]

    def run(folder: Path) -> None:
        monkeypatch.setattr("sys.argv", ["prepare.py", str(folder)])
        main()

    return run


def content(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_every_image_is_there_once_under_its_class(digits: Path) -> None:
    # Not above: each process that collects tests would import scikit-learn.
    import numpy as np  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415
    from sklearn.datasets import load_digits  # noqa: PLC0415

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


def test_two_preparations_at_once_make_one_good_set(
    digits: Path, prepare: Prepare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(2) as rivals:
        list(rivals.map(prepare, [tmp_path / "shared"] * 2))
    assert capsys.readouterr().out.count("1433 images") == 2
    assert content(tmp_path / "shared") == content(digits)
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["train", "validation"]


def test_what_is_there_is_left_alone_and_what_is_missing_is_added(
    digits: Path, prepare: Prepare, tmp_path: Path
) -> None:
    mine = tmp_path / "train" / "0" / "mine.png"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    prepare(tmp_path)
    assert content(tmp_path / "train") == {"0/mine.png": hashlib.sha256(b"mine").hexdigest()}
    assert content(tmp_path / "validation") == content(digits / "validation")
