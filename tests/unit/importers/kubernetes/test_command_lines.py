"""Shell scripts, torchrun's options and references to variables, as the shell, argparse and Kubernetes read them."""

import pytest

from muster.importers.kubernetes.launch.shell_script import NotSimple, Word, find_script, runs_file, split_script
from muster.importers.kubernetes.launch.torchrun import UnknownOption, is_torchrun, parse_torchrun
from muster.importers.kubernetes.references import expand, list_references, resolve_variable


def texts(script: str) -> list[list[str]]:
    return [[word.text for word in command] for command in split_script(script)]


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("torchrun a.py", [["torchrun", "a.py"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a \\\n  b\nc; d && e", [["a", "b"], ["c"], ["d"], ["e"]]),
        ("# nothing\na # b\n\nc#d", [["a"], ["c#d"]]),
        ('a "x \\"y\\" \\$z" \'$n\'', [["a", 'x "y" $z', "$n"]]),
        ("a ''", [["a", ""]]),
        ("", []),
    ],
)
def test_simple_scripts_are_split(script: str, commands: list[list[str]]) -> None:
    assert texts(script) == commands


@pytest.mark.parametrize(
    "script",
    ["a | b", "a > b", "a < b", "(a)", "a &", "if a; then b; fi", "for x in 1; do a; done", "a 'b", 'a "b', "a $(b)"],
)
def test_other_scripts_are_not_simple(script: str) -> None:
    with pytest.raises(NotSimple):
        split_script(script)


@pytest.mark.parametrize(
    ("word", "expands"),
    [("$X", True), ("${X}y", True), ('"$X"', True), ("'$X'", False), ("*.py", True), ("~/a", True), ("a~", False)],
)
def test_words_that_the_shell_replaces_are_marked(word: str, expands: bool) -> None:  # noqa: FBT001 - a row's value
    assert split_script(f"a {word}")[0][1].expands is expands


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["sh", "-c", "x"], "x"),
        (["/bin/bash", "-lc", "x"], "x"),
        (["bash", "-x", "-c", "x"], "x"),
        (["bash", "-c", "x", "argument"], None),
        (["bash", "x.sh"], None),
        (["python", "-c", "x"], None),
        ([], None),
    ],
)
def test_a_shells_script_is_found(words: list[str], script: str | None) -> None:
    line = find_script(words)
    assert (None if line is None else line.script) == script


@pytest.mark.parametrize(
    ("words", "is_file"),
    [
        (["./run.sh"], True),
        (["bash", "-x", "run.sh", "a"], True),
        (["sh", "-c", "cd /w && ./run.sh"], True),
        (["sh", "-c", "bash run.sh"], True),
        (["python", "a.py", "--hook", "b.sh"], False),
        (["sh", "-c", "python a.py --hook b.sh"], False),
    ],
)
def test_script_files_are_found(words: list[str], is_file: bool) -> None:  # noqa: FBT001 - a row's value
    assert runs_file(words) is is_file


def parse(*words: str) -> tuple[str, dict[str, str], list[str], list[str]]:
    line = parse_torchrun([Word(word, expands=False) for word in words])
    options = {name: word.text for name, word in line.options.items()}
    return line.python, options, [word.text for word in line.passed], [word.text for word in line.program]


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        (["torchrun", "a.py", "--nnodes", "3"], ("python", {}, [], ["a.py", "--nnodes", "3"])),
        (["/opt/bin/torchrun", "--nnodes=2", "a"], ("/opt/bin/python", {"nnodes": "2"}, [], ["a"])),
        (["torchrun", "--nproc_per", "4", "a"], ("python", {"nproc-per-node": "4"}, [], ["a"])),
        (["torchrun", "--tee", "3", "-r", "1", "a"], ("python", {}, ["--tee", "3", "-r", "1"], ["a"])),
        (["torchrun", "-m", "a.b"], ("python", {"module": "-m"}, [], ["a.b"])),
        (["torchrun", "--standalone", "--", "a"], ("python", {"standalone": "--standalone"}, [], ["a"])),
        (["python3.12", "-u", "-m", "torch.distributed.run", "a"], ("python3.12", {}, [], ["a"])),
    ],
)
def test_torchruns_options_are_read(words: list[str], parsed: object) -> None:
    assert is_torchrun(words)
    assert parse(*words) == parsed


@pytest.mark.parametrize("option", ["--gpus=3", "-x", "--rdzv", "--nnodes"])
def test_unknown_options_of_torchrun_are_named(option: str) -> None:
    with pytest.raises(UnknownOption, match=option.partition("=")[0]):
        parse("torchrun", option)


@pytest.mark.parametrize("words", [["python", "a.py"], ["python", "-m", "a"], ["python", "-m"], ["mytorchrun"], []])
def test_other_commands_are_no_torchrun(words: list[str]) -> None:
    assert not is_torchrun(words)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/b", "1/b"),
        ("$(B)", "$(B)"),
        ("$$(A)", "$(A)"),
        ("$(UNKNOWN) $A", "$(UNKNOWN) $A"),
        ("$(RANK)", "$(RANK)"),
    ],
)
def test_references_are_replaced_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": None, "RANK": "0"}) == expanded


def test_references_are_listed_and_shell_variables_resolved() -> None:
    assert list_references("$(A) $$(B) ${C} $(D.e)") == ["A", "D.e"]
    assert [resolve_variable(text, {"A": "1"}) for text in ("$A", "${A}", "$B", "$A/x")] == ["1", "1", "$B", "$A/x"]
