"""Texts parsed by muster and by kubectl's own code.

kubectl_scalars.json has the output of a small Go program that parses each text as `kubectl apply` does, with the
versions of its modules. muster may refuse more texts than kubectl, but never gives a text another value.
"""

import json
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.yaml.load import NotReadable, load_documents
from support.rows import check_rows

CASES = json.loads((Path(__file__).parent / "kubectl_scalars.json").read_text())["cases"]

STRICTER = {
    "v: !!binary /w==\n": "UTF-8 text, encoded in base64",
    "v: !custom x\n": "the tag !custom is not supported",
    "v: ! 12\n": "the tag ! is not supported",
    "v: !!set {a, b}\n": "the tag !!set is not supported",
    "v: !!omap [a: 1]\n": "the tag !!omap is not supported",
    "v: !!python/object:os.system x\n": "the tag !!python/object:os.system is not supported",
    "a: &x {k: 1, l: 2}\nb:\n  k: 3\n  <<: *x\n": "write << first",
    "yes: a\n": "put it in quotes",
    "y: a\n": "put it in quotes",
    "010: a\n": "put it in quotes",
    "1.5: a\n": "put it in quotes",
    "1.0: a\n": "put it in quotes",
    "1e3: a\n": "put it in quotes",
    "0.1: a\n": "put it in quotes",
    "a: 1\na: 2\n": "occurs twice, first on line 1",
    "1: a\n'1': b\n": "occurs twice, first on line 1",
    "a: {b: 1, b: 2}\n": "occurs twice, first on line 1",
    "a: 1\n...\nb: 2\n": "a second document after '...'",
    '{"a": 1, "a": 2}': "occurs twice",
    '{"a": "\\ud800"}': "surrogate",
    "a: &x 1\nb: &x 2\nc: *x\n": "an anchor is defined twice",
}
"""Texts that kubectl accepts and muster refuses, because kubectl would drop or rename something that the user wrote."""


def test_a_text_means_what_it_means_to_kubectl() -> None:
    def check(case: dict[str, JSON]) -> None:
        text = str(case["text"])
        if "error" in case or text in STRICTER:
            with pytest.raises(NotReadable, match=r"^job.yaml") as refused:
                load_documents(text, "job.yaml")
            assert STRICTER.get(text, "") in str(refused.value)
        else:
            assert exact([document.value for document in load_documents(text, "job.yaml")]) == exact(
                as_served(case["documents"])
            )

    check_rows(CASES, check)


def as_served(value: JSON) -> JSON:
    """As the API server stores it: an integer beyond 64 bits is a float."""
    if isinstance(value, dict):
        return {key: as_served(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_served(item) for item in value]
    beyond = isinstance(value, int) and not -(2**63) <= value < 2**63
    return float(value) if isinstance(value, int) and beyond else value


def exact(value: object) -> str:
    """Text that distinguishes 1 from 1.0 and from True."""
    return json.dumps(value, sort_keys=True)


def test_the_table_is_long_and_knows_its_exceptions() -> None:
    assert len(CASES) >= 300
    assert set(STRICTER) <= {case["text"] for case in CASES}
