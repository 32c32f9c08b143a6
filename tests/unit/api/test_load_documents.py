"""Files as documents: positions in messages, several documents, limits."""

import pytest

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import EnvVar
from muster.api.validation.validate import validate
from muster.api.yaml.load import MAX_TEXT_BYTES, NotReadable, decode_documents, load_documents

TWO = """\
# a comment
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: first}
spec:
  launcher: {direct: {}}
  command: [python, a.py]
---
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata:
  name: second
spec:
  launcher: {direct: {}}
  nodes: 0
  env:
  - name: A
  - nmae: B
"""


def test_a_problem_names_the_line_in_the_whole_file() -> None:
    first, second = load_documents(TWO, "two.yaml")
    assert validate(first).metadata.name == "first"
    with pytest.raises(InvalidResource) as refused:
        validate(second)
    assert str(refused.value).splitlines() == [
        "two.yaml:13: spec.command: missing, and required: The training command. The image's entry point is not used.",
        "two.yaml:15: spec.nodes: found 0; allowed are 1 to 10000",
        f"two.yaml:18: spec.env[1].name: missing, and required: {EnvVar.model_fields['name'].description}",
        "two.yaml:18: spec.env[1].nmae: unknown field; did you mean name?",
    ]


def test_an_anchor_is_a_value_wherever_it_is_used() -> None:
    (document,) = load_documents("a: &x {k: 1}\nb:\n  <<: *x\n  m: [*x]\n", "f")
    assert document.value == {"a": {"k": 1}, "b": {"k": 1, "m": [{"k": 1}]}}
    assert document.find_line(("b", "m", 0)) == 1
    assert document.find_line(("b", "nothing")) == 2


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a: 1\nb: \xff\n", "f:2: byte 0xff is not UTF-8"),
        ("a: 1".encode("utf-16"), "f:1: byte 0xff is not UTF-8"),
        (b"a: 1\n---\nb: {c: 1, c: 2}\n", 'f:3: the key "c" occurs twice'),
        (b"a: 1\n---\n\tb: 2\n", "f:3: a tab where YAML requires spaces"),
        (b"a: 1\n--- {b: 2}\n", "f:2: --- must be alone on its line"),
        (b"x" * (MAX_TEXT_BYTES + 1), f"f: the file has more than {MAX_TEXT_BYTES} bytes"),
        (b"[" * 5000, "f"),
        (b"{" * 5000, "f"),
        (b'{"a":' * 5000, "f"),
        (b"- " * 5000, "f"),
        (LAUGHS.encode(), "more than 100000 values"),
        (b'a: "\\UFFFFFFFF"\n', "f"),
        (b'a: "\\ud800"\n', "f:1: the text contains half of a surrogate pair"),
        (b"v: .inf\n", "f:1: JSON can't represent the number .inf"),
        (b"a: &x [*x]\n", "f:1: "),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_cannot_be_read_is_refused_with_its_place(data: bytes, says: str) -> None:
    with pytest.raises(NotReadable) as refused:
        decode_documents(data, "f")
    assert str(refused.value).startswith("f:")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    (document,) = decode_documents(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", "f")
    assert document.value == {"a": 1, "b": 2}


def test_a_number_of_more_digits_than_python_reads_is_a_text_as_to_kubectl() -> None:
    (document,) = decode_documents(b"a: " + b"1" * 5000, "f")
    assert document.value == {"a": "1" * 5000}


def test_an_empty_text_has_no_document() -> None:
    assert load_documents("", "f") == []
    assert load_documents("---\n# nothing\n---\n", "f") == []
