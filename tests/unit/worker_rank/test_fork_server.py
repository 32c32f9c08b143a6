"""What a fork server decides without doing anything: commands, variables, imports, and the form of a request."""

import io
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.fork_server.command import PythonCommand, parse_command
from muster_worker.fork_server.imports import TORCH_MODULES, find_early_change, find_imports, read_sources
from muster_worker.fork_server.request import LENGTH_BYTES, decode, encode, list_inherited_fds
from muster_worker.fork_server.variables import find_difference, find_moved_code
from muster_worker.rank import command_line, trainer_variables

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("command", "options", "script", "module"),
    [
        (["python", "train.py"], (), "train.py", ""),
        (["/opt/conda/bin/python3.11", "-u", "-O", "/code/train.py", "-m", "x"], ("-u", "-O"), "/code/train.py", ""),
        (["python3.14t", "-m", "torch.distributed.run", "--nnodes", "2"], (), "", "torch.distributed.run"),
    ],
)
def test_a_python_command_has_parts(command: list[str], options: tuple[str, ...], script: str, module: str) -> None:
    parsed = parse_command(command)
    assert isinstance(parsed, PythonCommand)
    assert (parsed.python, parsed.options, parsed.script, parsed.module) == (command[0], options, script, module)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ([], "not a Python"),
        (["bash", "train.sh"], "not a Python"),
        (["pythonx", "train.py"], "not a Python"),
        (["python"], "no script"),
        (["python", "-u"], "no script"),
        (["python", "-c", "print()"], "option -c"),
        (["python", "-Xdev", "train.py"], "option -Xdev"),
        (["python", "-I", "train.py"], "option -I"),
        (["python", "-"], "option -"),
        (["python", "-m"], "option -m"),
        (["python", "app.pyz"], "app.pyz is not a .py file"),
    ],
)
def test_another_command_starts_plainly(command: list[str], why: str) -> None:
    assert why in str(parse_command(command))


@pytest.mark.parametrize(
    ("fork_server", "rank", "moved"),
    [
        ("/opt/ml/code", "/run/source/1", ("/opt/ml/code", "/run/source/1")),
        ("/opt/ml/code:/lib", "/run/source/1:/lib", ("/opt/ml/code", "/run/source/1")),
        ("/opt/ml/code", "/opt/ml/code", None),
        ("/opt/ml/code:/lib", "/run/source/1", None),
        ("/opt/ml/code", "/run/source/1:/lib", None),
        ("", "/run/source/1", None),
        ("/opt/ml/code", "", None),
        ("/opt/ml/code", "lib", None),
    ],
)
def test_code_that_has_moved_is_first_on_both_paths(fork_server: str, rank: str, moved: tuple[str, str] | None) -> None:
    assert find_moved_code({"PYTHONPATH": fork_server}, {"PYTHONPATH": rank}) == moved


@pytest.mark.parametrize(
    ("fork_server", "rank", "name"),
    [
        ({"A": "1"}, {"A": "1"}, None),
        ({"A": "1"}, {"A": "2"}, "A"),
        ({}, {"OMP_NUM_THREADS": "2"}, "OMP_NUM_THREADS"),
        ({"LD_PRELOAD": "x"}, {}, "LD_PRELOAD"),
        ({"MUSTER_ATTEMPT": "1"}, {"MUSTER_ATTEMPT": "2", "RANK": "3", "MASTER_PORT": "1", "LOCAL_RANK": "0"}, None),
        ({}, {"NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "1", "TORCHELASTIC_RUN_ID": "x", "SM_X": ""}, None),
        ({}, dict.fromkeys((*trainer_variables.NAMES, *trainer_variables.NO_PROXY), "x"), None),
        ({}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TORCH_LOGS": "all"}, "CUDA_DEVICE_ORDER"),
    ],
)
def test_a_variable_that_an_import_may_read_has_to_be_equal(
    fork_server: dict[str, str], rank: dict[str, str], name: str | None
) -> None:
    assert find_difference(fork_server, rank) == name


@pytest.mark.parametrize(
    ("files", "modules"),
    [
        ({"train.py": "import torch"}, TORCH_MODULES),
        ({"train.py": "def main():\n    import os, torch.nn as nn"}, TORCH_MODULES),
        ({"train.py": "from transformers import (\n    Trainer,\n)"}, TORCH_MODULES),
        ({"train.py": "import model", "model.py": "from torch import nn"}, TORCH_MODULES),
        ({"train.py": "from vit import model", "vit/__init__.py": "", "vit/model.py": "import torch"}, TORCH_MODULES),
        ({"train.py": "import a", "a.py": "import b", "b.py": "import a"}, ()),
        ({"train.py": "import numpy, jax"}, ()),
        ({"train.py": "# import torch\nprint('torch')"}, ()),
        ({"train.py": "import torch_of_mine"}, ()),
        ({}, ()),
    ],
)
def test_torch_is_imported_for_scripts_that_import_it(
    tmp_path: Path, files: dict[str, str], modules: tuple[str, ...]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert find_imports(read_sources(str(tmp_path / "train.py"), [str(tmp_path)])) == modules


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"train.py": "import os\nos.environ['OMP_NUM_THREADS'] = '4'\nimport torch"}, "OMP_NUM_THREADS"),
        ({"train.py": "import os\nos.environ.setdefault(\"TORCH_LOGS\", 'all')\nfrom torch import nn"}, "TORCH_LOGS"),
        ({"train.py": "import os\nos.environ[name] = '4'\nimport torch"}, "variables"),
        ({"train.py": "import os\nos.environ.update(more)\nimport torch"}, "variables"),
        ({"train.py": "import dotenv\ndotenv.load_dotenv()\nimport torch"}, "variables"),
        ({"train.py": "def f():\n  import torch\nos.environ['A'] = '4'\nf()"}, "A"),
        ({"train.py": "import first, torch", "first.py": "import os\nos.putenv('A', '4')"}, "A"),
        ({"train.py": "os.environ['A'] = '#'; os.environ['NCCL_DEBUG'] = '4'\nimport torch"}, "A"),
        ({"train.py": "os.environ |= more\nimport torch"}, "variables"),
        ({"train.py": "import torch\nos.environ['OMP_NUM_THREADS'] = '4'"}, None),
        ({"train.py": "os.environ['MASTER_ADDR'] = os.environ['NCCL_DEBUG'] = '4'\nimport torch"}, None),
        ({"train.py": "if os.environ['A'] == '4': pass\n# os.environ['A'] = '5'\nimport torch"}, None),
        ({"train.py": "import first, torch", "first.py": "import transformers\nos.putenv('A', '4')"}, None),
    ],
)
def test_a_variable_that_a_script_sets_before_the_import_is_found(
    tmp_path: Path, files: dict[str, str], name: str | None
) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    change = find_early_change(read_sources(str(tmp_path / "train.py"), [str(tmp_path)]))
    assert change is None if name is None else f" sets {name} before it imports torch" in (change or "")


@given(command=st.lists(TEXT, min_size=1), environment=st.dictionaries(TEXT.filter(lambda name: "=" not in name), TEXT))
def test_a_request_has_the_command_and_the_environment(command: list[str], environment: dict[str, str]) -> None:
    mask = frozenset({int(signal.SIGTERM)})
    data = encode(command, environment, mask, (7, 9))
    assert int.from_bytes(data[:LENGTH_BYTES], "big") == len(data) - LENGTH_BYTES
    request = decode(data[LENGTH_BYTES:])
    decoded = (request.command, request.variables, request.signal_mask, request.fds)
    assert decoded == (command, environment, mask, [7, 9])


@pytest.mark.parametrize("data", [b"", b"1\0", b"x\0", b"0\0" * 8, b"0\0" * 10])
def test_other_bytes_are_no_request(data: bytes) -> None:
    with pytest.raises((ValueError, StopIteration, RuntimeError)):
        decode(data)


def test_what_a_program_would_inherit_has_no_files_of_this_process() -> None:
    with Path(__file__).open("rb") as file:
        assert file.fileno() not in list_inherited_fds()


def test_a_kernel_that_does_not_tell_where_the_command_line_is_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("/proc/self/cmdline").read_bytes()
    stat = b"%d (python) R %s" % (os.getpid(), b" ".join([b"0"] * 49))
    monkeypatch.setattr(command_line, "open", lambda *_: io.BytesIO(stat), raising=False)
    command_line.write_command_line(["python", "train.py"])
    assert Path("/proc/self/cmdline").read_bytes() == before
