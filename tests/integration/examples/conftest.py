"""The digits, prepared once for all examples."""

import sys
from pathlib import Path

import pytest

from support.example_runs import EXAMPLES, finish, start


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("digits")
    prepare = finish(start([sys.executable, str(EXAMPLES / "digits" / "prepare.py"), str(directory)], {}))
    assert prepare.exit_code == 0, prepare.messages
    return directory


@pytest.fixture(scope="session")
def channels(digits: Path) -> dict[str, str]:
    return {"SM_CHANNEL_TRAIN": str(digits / "train"), "SM_CHANNEL_VALIDATION": str(digits / "validation")}
