"""Names of jobs, hyperparameters, and a notebook's cells: rules that hold for all of them."""

import ast
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.importers.sagemaker.notebook import split_notebook
from muster.importers.sagemaker.translate.arguments import Problems
from muster.importers.sagemaker.translate.hyperparameters import convert_hyperparameters
from muster.importers.sagemaker.translate.job_names import MAX_CHARS, choose_job_name
from muster.importers.sagemaker.translate.recording import Value

LABEL = re.compile("[a-z]([a-z0-9-]*[a-z0-9])?")

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)


@given(st.lists(st.text(max_size=60), max_size=12))
def test_every_job_has_a_name_of_its_own_that_it_can_have(wanted: Sequence[str]) -> None:
    taken: list[str] = []
    for name in wanted:
        taken.append(choose_job_name(name, taken))
    assert len(set(taken)) == len(wanted)
    assert all(LABEL.fullmatch(name) and len(name) <= MAX_CHARS for name in taken)


@given(st.dictionaries(st.text(min_size=1), st.one_of(SCALARS, st.lists(SCALARS), st.dictionaries(st.text(), SCALARS))))
def test_a_hyperparameter_is_plain_or_raw_and_sent_as_the_sdk_does(given_: dict[str, Value]) -> None:
    result = convert_hyperparameters(given_, "Json", "Json", "PyTorch", Problems())
    sent = {**{name: json.dumps(value) for name, value in result.values.items()}, **result.raw_texts}
    assert sent == {name: json.dumps(value) for name, value in given_.items()}
    assert not result.values.keys() & result.raw_texts.keys()


@pytest.mark.parametrize(
    ("value", "plain"),
    [(1, True), (1.5, True), (True, True), ("x", True), (1.0, False), (2**63, False), (None, False), ([1], False)],
)
def test_only_what_a_file_keeps_as_it_is_is_plain(value: Value, plain: bool) -> None:  # noqa: FBT001 - a row's value
    result = convert_hyperparameters({"x": value}, "Str", "Str", "Estimator", Problems())
    assert ("x" in result.values) is plain


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("x = 1", "x = 1"),
        ("%matplotlib inline", "get_ipython().run_line_magic('matplotlib', 'inline')\n"),
        ("if x:\n    !ls -l", "if x:\n    get_ipython().system('ls -l')\n"),
        ("a = !ls", "a = get_ipython().getoutput('ls')\n"),
        ("%%time\nx = 1\n", "\nx = 1\n"),
        ("%%html\n<p>", "get_ipython().run_cell_magic('html', '', '<p>')\n"),
        ("x = 5 \\\n% 3", "x = 5 \\\n% 3"),
        ("estimator.fit?", "\n"),
    ],
)
def test_magic_becomes_python(cell: str, python: str) -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": cell}]})
    (part,) = split_notebook(text, "launch.ipynb")
    assert part.text == python
    ast.parse(part.text)
