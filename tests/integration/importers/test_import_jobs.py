"""Scripts that differ from the golden ones, with the resulting part of the job."""

from pathlib import Path

import pytest
import yaml

from muster.api.document import JSON
from muster.cli.errors import BadInput
from support.import_runs import ImportFolder

ROWS = yaml.safe_load(Path(__file__).with_name("import_jobs.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['path']}-{number}" for number, row in enumerate(ROWS)])
def test_the_job_says_it(import_folder: ImportFolder, row: dict[str, JSON]) -> None:
    result: JSON = import_folder.run(str(row["script"])).spec
    for name in str(row["path"]).split("."):
        assert isinstance(result, dict)
        result = result[name]
    assert result == row["is"]


def numbers_in(job: JSON) -> list[int]:
    match job:
        case {"spec": {"hyperparameters": {"n": int(number)}}}:
            return [number]
    return []


def test_jobs_that_are_started_side_by_side_are_all_there(import_folder: ImportFolder) -> None:
    script = """\
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: pytorch(hyperparameters={"n": n, "text": "x" * 2000}).fit(), range(40)))
    """
    numbers = [number for job in import_folder.run(script).jobs for number in numbers_in(job)]
    assert sorted(numbers) == list(range(40))


def test_jobs_of_unjoined_threads_are_imported(import_folder: ImportFolder) -> None:
    script = """\
    import threading, time
    def late():
        time.sleep(0.2)
        pytorch(base_job_name="late").fit()
    threading.Thread(target=late).start()
    pytorch(base_job_name="early").fit()
    """
    assert [job["metadata"] for job in import_folder.run(script).jobs] == [{"name": "early"}, {"name": "late"}]


def test_the_account_is_the_roles(import_folder: ImportFolder) -> None:
    script = "pytorch(output_path=f's3://{sagemaker.Session().default_bucket()}/out').fit()"
    outcome = import_folder.run(script, account=None)
    assert outcome.spec["output"] == {"s3": "s3://sagemaker-us-west-2-111122223333/out"}


def test_a_warning_names_unread_defaults_of_the_sdk(
    import_folder: ImportFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = import_folder.folder / ".config" / "sagemaker"
    config.mkdir(parents=True)
    (config / "config.yaml").write_text("SchemaVersion: '1.0'\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(import_folder.folder))
    outcome = import_folder.run("pytorch().fit()")
    assert f"warning: {config / 'config.yaml'} has defaults for the SageMaker SDK" in outcome.err
    assert outcome.code == 0


def test_each_fit_is_a_job_with_a_name_of_its_own(import_folder: ImportFolder) -> None:
    script = """\
    for rate in (0.1, 0.01):
        pytorch(base_job_name="ViT_large", hyperparameters={"lr": rate}).fit()
    pytorch(base_job_name="any").fit(job_name="bert")
    """
    outcome = import_folder.run(script)
    assert [job["metadata"] for job in outcome.jobs] == [
        {"name": "vit-large"},
        {"name": "vit-large-2"},
        {"name": "bert"},
    ]


def test_the_jobs_alone_are_on_standard_output(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("print('launching'); pytorch().fit()")
    assert "launching" in outcome.err
    assert outcome.out.startswith("# Imported from launch.py:10.\napiVersion: ")
    assert "    # Auto: muster adds its agent to the code's archive" in outcome.out


def test_the_script_has_its_arguments_its_name_and_its_neighbours(import_folder: ImportFolder) -> None:
    (import_folder.folder / "settings.py").write_text("NODES = 5\n", encoding="utf-8")
    script = """\
    import argparse, settings
    parser = argparse.ArgumentParser()
    parser.add_argument("--type")
    if __name__ == "__main__":
        pytorch(instance_type=parser.parse_args().type, instance_count=settings.NODES).fit()
    """
    outcome = import_folder.run(script, arguments=("--type", "ml.g5.xlarge"))
    assert (outcome.spec["nodes"], outcome.block["instanceType"]) == (5, "ml.g5.xlarge")
    assert not (import_folder.folder / "__pycache__").exists()


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ("s3://my-bucket/code.tar.gz", {"s3": {"uri": "s3://my-bucket/code.tar.gz"}}),
        (f"https://h/o/n.git@{'a' * 40}", {"git": {"url": "https://h/o/n.git", "commit": "a" * 40}}),
        (
            f"https://h/o/n.git@{'a' * 40}//src/a",
            {"git": {"url": "https://h/o/n.git", "commit": "a" * 40, "path": "src/a"}},
        ),
    ],
)
def test_the_code_may_lie_elsewhere(import_folder: ImportFolder, given: str, source: JSON) -> None:
    (import_folder.folder / "train.py").unlink()
    assert import_folder.run("pytorch().fit()", source=given).spec["source"] == source


def test_code_that_is_too_large_for_a_file_is_refused(import_folder: ImportFolder) -> None:
    (import_folder.folder / "src").mkdir()
    (import_folder.folder / "src" / "train.py").write_bytes(b"\xff\xfe")
    outcome = import_folder.run("pytorch(source_dir='src').fit()")
    assert "train.py isn't text; set the code's location: --source https://" in outcome.err


def test_a_warning_names_files_of_tools_that_are_left_out(import_folder: ImportFolder) -> None:
    for folder in ("src", "src/__pycache__", "src/lib"):
        (import_folder.folder / folder).mkdir()
    for name in ("train.py", "lib/data.py", "__pycache__/x.pyc"):
        (import_folder.folder / "src" / name).write_text("", encoding="utf-8")
    outcome = import_folder.run("pytorch(source_dir='src').fit()")
    assert outcome.spec["source"] == {"inline": {"files": {"lib/data.py": "", "train.py": ""}}}
    assert "muster omits __pycache__" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"account": "12"}, "12 digits"),
        ({"region": "US West"}, "--aws-region US West: a region such as"),
        ({"source": "ftp://x"}, "is expected"),
        ({"python": "/no/python"}, "No such file"),
    ],
)
def test_options_are_looked_at(import_folder: ImportFolder, options: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        import_folder.run("pytorch().fit()", **options)


def test_a_script_that_is_not_there(import_folder: ImportFolder) -> None:
    with pytest.raises(BadInput, match="a script"):
        import_folder.run_file("x", "launch.txt")
