"""The golden launch scripts, imported one by one: the result equals the checked-in jobs, whose requests are
compared.
"""

import pytest

from muster_dev.golden_import import GOLDEN_FOLDER, JOBS_FOLDER, REJECTED_CASE, build_scripts, create_code_folder
from muster_dev.paths import ROOT
from support.import_runs import ImportFolder

SCRIPTS = dict(build_scripts(ROOT / GOLDEN_FOLDER))


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != REJECTED_CASE])
def test_a_script_becomes_its_job(import_folder: ImportFolder, name: str) -> None:
    create_code_folder(import_folder.folder)
    outcome = import_folder.run_file(SCRIPTS[name])
    assert outcome.err == ""
    assert outcome.out == (ROOT / JOBS_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    assert outcome.code == 0


def test_what_sagemaker_refuses_becomes_no_job(import_folder: ImportFolder) -> None:
    create_code_folder(import_folder.folder)
    outcome = import_folder.run_file(SCRIPTS[REJECTED_CASE])
    assert outcome.out == ""
    assert "keepAliveSeconds with spot; a warm pool and spot exclude each other" in outcome.err
    assert outcome.code == 1
