"""The documentation's examples work: files are written, commands are executed, resources are validated."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from integration.docs.pages import PAGES, Block, blocks, headings
from muster.api.config.operator import OperatorConfig, read_config
from muster.api.document import Document
from muster.api.yaml.load import load_documents
from muster.cli.commands import app
from muster.cli.job_file import expand_document
from muster.cli.run.run_training import TOOLKIT
from muster.importers.kubernetes.kinds.registry import IMPORTERS, RUNTIME_GROUP, RUNTIME_PLURALS
from muster.importers.kubernetes.manifests import import_manifests, read_kind
from muster.render.training_template.expand import validate_expanded
from muster.render.training_template.template import is_template, read_template
from muster_dev.paths import ROOT

BIN = pathlib.Path(sys.executable).parent
PATIENCE = 600
"""A limit in seconds that only a hanging command reaches: other tests may run at the same time."""
WIDTH = 120
LANGUAGES = {"yaml", "python", "sh", "json", ""}
"""The tests check blocks of these languages; a block without one is a diagram or output."""


def test_every_block_is_of_a_kind_that_is_looked_at() -> None:
    assert {block.language for block in blocks()} <= LANGUAGES
    assert PAGES


@pytest.mark.parametrize(
    "block", [block for block in blocks() if block.language == "yaml"], ids=lambda block: block.page
)
def test_resources_and_configurations_are_valid(block: Block) -> None:
    if block.text.startswith("# status\n"):
        return
    (document,) = load_documents(block.text, block.page)
    if is_template(document):
        assert read_template(document).spec
        return
    if "kind: HorizontalPodAutoscaler\n" in block.text:
        return  # a test on a cluster applies it
    if block.text.startswith("apiVersion: kueue.x-k8s.io/"):
        return  # tests/cluster/queues/test_kueue.py applies it
    if "name: argocd-cm\n" in block.text:
        return  # tests/cluster/fields/test_gitops_health.py runs it
    if read_kind(document)[0] == RUNTIME_GROUP and read_kind(document)[1] in RUNTIME_PLURALS:
        return  # the TrainJob on the same page needs it
    if read_kind(document) in IMPORTERS:
        assert import_manifests([document], list(resources(block.page))).problems == []
    elif block.text.startswith("# config.yaml\n"):
        assert read_config(document) != OperatorConfig()
    else:
        templates = [read_template(each) for each in resources(block.page) if is_template(each)]
        validate_expanded(expand_document(document, templates))


def resources(page: str) -> Iterator[Document]:
    """Yield the documents of a page's resources, among which a job finds its template, and a TrainJob its runtime."""
    for block in blocks(ROOT / page):
        if block.language == "yaml":
            yield from load_documents(block.text, page)


@pytest.mark.parametrize(
    "block", [block for block in blocks() if block.language == "json"], ids=lambda block: block.page
)
def test_json_can_be_pasted(block: Block) -> None:
    assert json.loads(block.text)


@pytest.fixture
def desk(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with all files that these pages ask their reader to write."""
    for block in blocks():
        if block.page in {"README.md", "docs/import.md", "docs/quickstart.md"} and block.name is not None:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('trained')\n", encoding="utf-8")
    return tmp_path


def shell(command: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(folder), "TMPDIR": os.environ["TMPDIR"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done


def shell_commands(page: str) -> list[str]:
    shells = (block for block in blocks() if (block.page, block.language) == (page, "sh"))
    return [line for block in shells for line in block.commands if not line.startswith(("kubectl ", "make "))]


def without_waiting(file: pathlib.Path) -> None:
    """Remove the pauses of the job that prints once a second."""
    text, found = re.subn(r"time\.sleep\(1\)", "time.sleep(0)", file.read_text("utf-8"))
    assert found == 1
    file.write_text(text, "utf-8")


def test_the_readmes_commands_run(desk: pathlib.Path) -> None:
    without_waiting(desk / "hello.yaml")
    commands = shell_commands("README.md")
    assert commands[0] == ". .venv/bin/activate"
    done = {command.partition("muster ")[2].split()[0]: shell(command, desk) for command in commands[1:]}

    assert set(done) == {"validate", "render", "explain", "run", "import"}
    assert "All 4 ranks succeeded" in done["run"].stderr
    assert "[rank 0] rank 0 of 4: step 10" in done["run"].stderr
    assert "[rank 1]" not in done["run"].stderr
    # the last rendered job is the imported one
    assert "TrainingJobName: vit-" in done["render"].stdout


def quick_starts_run() -> str:
    (here,) = [command for command in shell_commands("docs/quickstart.md") if command.startswith("muster run ")]
    return here


def test_the_quick_starts_first_job_runs_here(desk: pathlib.Path) -> None:
    without_waiting(desk / "hello.yaml")
    assert "[rank 3] rank 3 of 4: step 10" in shell(quick_starts_run(), desk).stderr


# Its two launchers and four ranks each import torch, which takes seconds.
@pytest.mark.long
def test_the_quick_starts_torchrun_job_runs_here(desk: pathlib.Path) -> None:
    said = shell(quick_starts_run().replace("hello", "train"), desk).stderr
    assert "All 4 ranks succeeded at step 50" in said
    assert "[rank 0] loss=" in said


def test_the_readme_and_the_quick_start_have_the_same_first_job() -> None:
    jobs = [block.text for block in blocks() if block.name == "hello.yaml"]
    assert len(jobs) == 2
    assert len(set(jobs)) == 1


def test_the_readmes_one_file_is_a_job_of_each_place(desk: pathlib.Path) -> None:
    here, there = (command for command in shell_commands("README.md") if "vit.yaml" in command)
    pods, request = shell(here, desk).stdout, shell(there, desk).stdout

    assert "kind: Pod" in pods
    assert "CreateTrainingJob" not in pods
    assert request.startswith("# CreateTrainingJob in us-west-2")
    for text in ("s3://team-a-data/imagenet/", "s3://team-a-data/vit/checkpoints", "pytorch-training:2.8.0-gpu-py312"):
        assert text in pods
        assert text in request


# Each node's torchrun imports torch. How the job is read and rendered, `make test` tries above.
@pytest.mark.long
def test_the_readmes_one_file_runs_here_without_any_account(desk: pathlib.Path) -> None:
    command = re.search(r"`(muster run -f vit\.yaml --input train=DIR [^`]*)`", (ROOT / "README.md").read_text("utf-8"))
    assert command is not None
    # its repository does not exist, and eight ranks per node are too many for this machine
    code = {"train.py": "import os; print(os.listdir(os.environ['SM_CHANNEL_TRAIN']))"}
    text = (desk / "vit.yaml").read_text("utf-8").replace("procsPerNode: 8", "procsPerNode: 1")
    text, found = re.subn(r"  source: .*", f"  source: {json.dumps({'inline': {'files': code}})}", text)
    assert found == 1
    (desk / "vit.yaml").write_text(text, "utf-8")
    (desk / "DIR").mkdir()
    (desk / "DIR" / "1.png").touch()

    value = shell(f"{command[1]} --logs", desk).stderr
    assert "[rank 0] ['1.png']" in value
    assert "All 2 ranks succeeded" in value


def commands() -> Iterator[tuple[str, str]]:
    """Every `muster ...` command of a page or of an example's first lines, with the page."""
    for page in [*PAGES, *ROOT.glob("training/examples/*/job.yaml")]:
        text = re.sub(r"\\\n#? *", " ", page.read_text(encoding="utf-8"))
        # a block without a language may also have commands
        shells = [text] if page.suffix == ".yaml" else ["\n".join(block.commands) for block in blocks(page)]
        for command in re.findall(r"`(muster [a-z][^`]*)`", text):
            yield str(page.relative_to(ROOT)), command
        for command in re.findall(r"^(?:#   )?(muster .*)", "\n".join(shells), re.MULTILINE):
            yield str(page.relative_to(ROOT)), command


def test_commands_that_pages_show_have_their_options() -> None:
    current = get_command(app)
    assert isinstance(current, TyperGroup)
    seen = set()
    for page, command in commands():
        name, *words = shlex.split(command)[1:]
        assert name in current.commands, f"{page}: {command}"
        options = {option for parameter in current.commands[name].params for option in parameter.opts}
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used - {"--"} <= options, f"{page}: {command}"
        seen.add(name)
    assert seen == {name for name, command in current.commands.items() if not command.hidden}


def test_commands_on_files_of_the_tree_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = {command for _, command in commands() if re.match(r"muster (validate|render|explain) -f \S*/\S+$", command)}
    assert {command.split()[1] for command in found} >= {"render", "explain"}
    for command in found:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, f"{command}\n{done.stderr}"


def test_the_examples_for_sagemaker_print_what_is_kept_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    seen = set()
    for page, command in commands():
        if page.endswith("/job.yaml") and command.startswith("muster render "):
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert (done.exit_code, done.stderr) == (0, ""), command
            example = pathlib.Path(page).parent.name
            assert done.stdout == (ROOT / "tests" / "unit" / "golden" / f"{example}.yaml").read_text(encoding="utf-8")
            seen.add(example)
    jobs = {path.parent.name: path.read_text(encoding="utf-8") for path in ROOT.glob("training/examples/*/job.yaml")}
    assert seen == {name for name, text in jobs.items() if "\n  backend: SageMaker\n" in text}


def test_the_toolkit_is_the_one_that_muster_asks_for() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"^pip install (sagemaker-.*)$", pages, re.MULTILINE)) == {TOOLKIT}


def test_targets_and_files_that_pages_name_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = "".join(re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL))
        for target in re.findall(r"`make ([\w-]+)", text) + re.findall(r"^make ([\w-]+)", blocks, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"
        for program in re.findall(r"\.venv/bin/([\w-]+)", text):
            assert (BIN / program).exists(), f"{page}: .venv/bin/{program}"
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
        for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
            target = page.parent / link if link else page
            assert target.exists(), f"{page}: {link}"
            assert not anchor or anchor in headings(target), f"{page}: {link}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_are_short_outside_tables(page: pathlib.Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    long = [
        f"{number}: {line}" for number, line in enumerate(lines, 1) if len(line) > WIDTH and not line.startswith("|")
    ]
    assert long == []


def test_the_index_has_every_page() -> None:
    """By a link to the page, or to its folder."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#:]+)\)", index)}
    pages = {page for page in ROOT.glob("docs/**/*.md") if page.name != "README.md"}
    assert {str(page.relative_to(ROOT)) for page in pages if not {page, page.parent} & linked} == set()
