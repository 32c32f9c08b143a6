"""Notebooks are imported like scripts: their magic is skipped or interpreted."""

import json

import pytest

from muster.cli.errors import BadInput
from support.import_runs import ESTIMATOR, ImportFolder


def notebook(*cells: str, markdown: str = "# Training") -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": [markdown]}, *code], "nbformat": 4})


def test_cells_are_run_in_their_order(import_folder: ImportFolder) -> None:
    outcome = import_folder.run_file(notebook(ESTIMATOR, "p = pytorch()", "p.fit('s3://my-bucket/a')"), "launch.ipynb")
    assert outcome.err == ""
    assert outcome.out.startswith("# Imported from launch.ipynb[4]:1.\n")


def test_a_warning_names_skipped_magic(import_folder: ImportFolder) -> None:
    cells = (
        "%pip install -q sagemaker\n!aws s3 ls\nfiles = !ls\n  \n?print\n" + ESTIMATOR,
        "%%bash\nrm -rf /",
        "%%time\npytorch().fit()",
        "text = '''\n%no magic\n!nor this\n'''\npytorch(base_job_name=text.split()[1]).fit()",
    )
    outcome = import_folder.run_file(notebook(*cells), "launch.ipynb")
    assert "warning: launch.ipynb[2]:1: %pip install -q sagemaker is skipped" in outcome.err
    assert "warning: launch.ipynb[2]:2: !aws s3 ls is skipped" in outcome.err
    assert "warning: launch.ipynb[3]:1: %%bash is skipped" in outcome.err
    assert outcome.code == 0
    assert [job["metadata"] for job in outcome.jobs] == [{"name": "launch"}, {"name": "magic"}]


def test_a_script_that_the_notebook_writes_is_the_jobs(import_folder: ImportFolder) -> None:
    (import_folder.folder / "train.py").unlink()
    cells = (
        ESTIMATOR,
        "%%writefile train.py\nprint('first')\n",
        "%%writefile -a train.py\nprint('second')\n",
        "pytorch().fit()",
    )
    outcome = import_folder.run_file(notebook(*cells), "launch.ipynb")
    assert outcome.spec["source"] == {"inline": {"files": {"train.py": "print('first')\nprint('second')\n"}}}
    assert not (import_folder.folder / "train.py").exists()


def test_a_folder_that_the_notebook_fills_is_the_jobs(import_folder: ImportFolder) -> None:
    (import_folder.folder / "src").mkdir()
    (import_folder.folder / "src" / "data.py").write_text("DATA = 1\n", encoding="utf-8")
    cells = (ESTIMATOR, "%%writefile src/train.py\nimport data\n", "pytorch(source_dir='src').fit()")
    outcome = import_folder.run_file(notebook(*cells), "launch.ipynb")
    assert outcome.spec["source"] == {"inline": {"files": {"data.py": "DATA = 1\n", "train.py": "import data\n"}}}


def test_what_the_notebook_has_written_is_uploaded_from_where_it_would_lie(import_folder: ImportFolder) -> None:
    cells = (
        ESTIMATOR,
        "%%writefile src/train.py\nprint('first')\n",
        "upload = sagemaker.Session().upload_data",
        "both = {'folder': upload('src', 'bkt', 'x'), 'file': upload('src/train.py', 'bkt', 'x')}",
        "pytorch(source_dir='src').fit(both)",
    )
    outcome = import_folder.run_file(notebook(*cells), "launch.ipynb")
    assert outcome.spec["inputs"] == [
        {"name": "folder", "s3": {"uri": "s3://bkt/x"}},
        {"name": "file", "s3": {"uri": "s3://bkt/x/train.py"}},
    ]


def test_what_a_notebook_shows_is_shown(import_folder: ImportFolder) -> None:
    outcome = import_folder.run_file(notebook(ESTIMATOR, "display('a table')\npytorch().fit()"), "launch.ipynb")
    assert (outcome.code, outcome.err) == (0, "a table\n")


def test_a_notebook_saved_as_a_script_is_the_same(import_folder: ImportFolder) -> None:
    script = """\
    get_ipython().run_line_magic('pip', 'install sagemaker')
    get_ipython().system('ls')
    get_ipython().run_cell_magic('writefile', 'other.py', "print('x')")
    pytorch(entry_point="other.py").fit()
    """
    outcome = import_folder.run(script)
    assert "%pip install sagemaker is skipped" in outcome.err
    assert outcome.spec["source"] == {"inline": {"files": {"other.py": "print('x')"}}}


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", '{"cells": [1]}', "[" * 20_000])
def test_a_file_that_is_no_notebook_is_refused(import_folder: ImportFolder, text: str) -> None:
    with pytest.raises(BadInput, match="a notebook of format 4 is expected"):
        import_folder.run_file(text, "launch.ipynb")
