"""Parts of a launch script that can't be imported: each is named with its line, and no job is printed."""

from pathlib import Path

import pytest
import yaml

from support.import_runs import ImportFolder

ROWS = yaml.safe_load(Path(__file__).with_name("import_refusals.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=[row["says"][:40] for row in ROWS])
def test_it_is_named_and_nothing_is_printed(import_folder: ImportFolder, row: dict[str, str]) -> None:
    outcome = import_folder.run(row["script"])
    assert row["says"] in outcome.err
    assert "launch.py:" in outcome.err
    assert (outcome.code, outcome.out) == (1, "")


def test_one_job_that_is_wrong_keeps_the_others_back(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("pytorch().fit()\npytorch(max_wait=1).fit()")
    assert "launch.py:11: PyTorch(max_wait=...)" in outcome.err
    assert outcome.out == ""


def test_a_script_without_training_is_refused(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("pytorch()")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", "launch.py: it starts no training job\n")


@pytest.mark.parametrize(
    ("script", "option"),
    [
        ("sagemaker.Session().default_bucket()", "--aws-region REGION"),
        ("sagemaker.Session().account_id()", "--aws-account NUMBER"),
        ("sagemaker.get_execution_role()", "--role ARN"),
    ],
)
def test_missing_facts_name_their_option(import_folder: ImportFolder, script: str, option: str) -> None:
    outcome = import_folder.run_file(f"import sagemaker\n{script}\n", region=None, account=None, role=None)
    assert option in outcome.err
    assert outcome.code == 1
