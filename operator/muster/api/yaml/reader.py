"""Parse a YAML document into the JSON that kubectl would send, and into the line of every field.

The parser rejects text that kubectl silently drops: duplicate keys, unknown tags, and a second document after `...`.
"""

import base64
import binascii
import re
from collections.abc import Iterator

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner
from yaml.tokens import Token

from muster.api.document import JSON, FieldPath, quote
from muster.api.yaml.scalars import NotJSON, Scalar, resolve_scalar

MAX_VALUES = 100_000
"""Maximum number of values in a document after expanding its anchors."""

MAX_NESTING = 200
"""Maximum number of open brackets in a document."""

_PLAIN = "plain"
_STR, _INT, _FLOAT, _BOOL, _NULL, _TIMESTAMP, _BINARY, _MERGE, _MAP, _SEQ = (
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "binary", "merge", "map", "seq")
)
_TAG_TYPES: dict[str, tuple[type, ...]] = {
    _INT: (int,),
    _FLOAT: (int, float),
    _BOOL: (bool,),
    _NULL: (type(None),),
    _TIMESTAMP: (str,),
}
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")


class ParseError(ValueError):
    """The text is not a document that muster accepts. `line` counts from 1; None if the line is unknown."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's parser without its scalar types: it gives all plain scalars the tag `plain`."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip tabs between tokens, except in indentation, as kubectl's parser does."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def fetch_flow_collection_start(self, TokenClass: type[Token]) -> None:  # noqa: N803 - PyYAML's name
        """Reject too many open brackets at once: PyYAML's time for them is quadratic."""
        if self.flow_level >= MAX_NESTING:
            raise ParseError("values are nested too deeply", self.line + 1)
        super().fetch_flow_collection_start(TokenClass)

    def compose_scalar_node(self, anchor: dict[str, Node]) -> ScalarNode:
        """Reject the tag `!`, which PyYAML would drop."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.tag == "!":
            raise ParseError("the tag ! is not supported; remove it", event.start_mark.line + 1)
        return super().compose_scalar_node(anchor)


# kubectl's parser lacks this YAML 1.2 escape. The stubs declare the table final, but the scanner reads it from self.
_Loader.ESCAPE_REPLACEMENTS = {  # type: ignore[misc]
    char: meaning for char, meaning in Scanner.ESCAPE_REPLACEMENTS.items() if char != "/"
}
_Loader.add_implicit_resolver(_PLAIN, re.compile(""), None)


def read_yaml(text: str) -> tuple[JSON, dict[FieldPath, int]] | None:
    """Return the document's value and its fields' lines (from 1); None if the text has only comments.

    Raises `ParseError` for text that is not YAML, has no JSON form, or that kubectl would drop.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except ParseError:
        raise
    except yaml.MarkedYAMLError as error:
        raise _convert_error(error) from None
    except yaml.YAMLError as error:
        raise ParseError(f"not YAML: {' '.join(str(error).split())}") from None
    except (RecursionError, ValueError, OverflowError):
        # ValueError and OverflowError come from an escape such as \UFFFFFFFF, which is not a character.
        raise ParseError("not YAML: values are nested too deeply, or an escape is not a character") from None
    if node is None:
        return None
    node_reader = _NodeReader()
    try:
        return node_reader.read_value(node, ()), node_reader.lines
    except RecursionError:
        raise ParseError("values are nested too deeply", _get_line(node)) from None


class _NodeReader:
    """Converts a document's nodes to JSON values in one pass."""

    def __init__(self) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._remaining_values = MAX_VALUES
        self._parent_ids: set[int] = set()

    def read_value(self, node: Node, path: FieldPath) -> JSON:
        self._remaining_values -= 1
        if self._remaining_values < 0:
            raise ParseError(f"more than {MAX_VALUES} values, including repeated anchors", _get_line(node))
        self.lines.setdefault(path, _get_line(node))
        if isinstance(node, ScalarNode):
            return _read_scalar(node)
        if id(node) in self._parent_ids:
            raise ParseError("an anchor's value contains itself", _get_line(node))
        self._parent_ids.add(id(node))
        try:
            return self._read_map(node, path) if isinstance(node, MappingNode) else self._read_list(node, path)
        finally:
            self._parent_ids.discard(id(node))

    def _read_list(self, node: Node, path: FieldPath) -> list[JSON]:
        if node.tag != _SEQ or not isinstance(node, SequenceNode):
            raise _build_tag_error(node)
        return [self.read_value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _read_map(self, node: MappingNode, path: FieldPath) -> dict[str, JSON]:
        if node.tag != _MAP:
            raise _build_tag_error(node)
        result: dict[str, JSON] = {}
        key_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                for merged in _find_merged_nodes(value_node):
                    self._merge(self.read_value(merged, path), result, key_lines, key_node)
                continue
            key = _read_key(key_node)
            if key in key_lines:
                raise ParseError(
                    f"the key {quote(key)} occurs twice, first on line {key_lines[key]}", _get_line(key_node)
                )
            key_lines[key] = _get_line(key_node)
            self.lines[(*path, key)] = key_lines[key]
            result[key] = self.read_value(value_node, (*path, key))
        return result

    def _merge(self, merged: JSON, result: dict[str, JSON], key_lines: dict[str, int], node: Node) -> None:
        if not isinstance(merged, dict):
            raise ParseError("<< needs a map, or a list of maps", _get_line(node))
        for key, value in merged.items():
            # In kubectl a later << overrides the key, but in YAML the key overrides <<. Both agree if << comes first.
            if key in key_lines:
                raise ParseError(
                    f"<< comes after the key {quote(key)} and also contains it; write << first", _get_line(node)
                )
            result[key] = value


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and (node.tag == _MERGE or (node.tag == _PLAIN and node.value == "<<"))


def _find_merged_nodes(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from reversed(node.value)  # so that the first map takes precedence
    else:
        yield node


def _read_key(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        raise ParseError("a key is a list or a map; keys must be text", _get_line(node))
    raw: str = node.value
    value = _read_scalar(node)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and str(value) == raw:
        return raw
    if isinstance(value, bool) and raw in ("true", "false"):
        return raw
    # kubectl would silently rename the field: y becomes true, and 010 becomes 8.
    kind = "null" if value is None else "a truth value" if isinstance(value, bool) else "a number"
    raise ParseError(f"YAML reads the key {quote(raw)} as {kind}; put it in quotes", _get_line(node))


def _read_scalar(node: ScalarNode) -> Scalar:
    text: str = node.value
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ParseError("the text contains half of a surrogate pair, which is not a character", _get_line(node))
    try:
        if node.tag == _PLAIN:
            return resolve_scalar(text)
        if node.tag == _STR:
            return text
        if node.tag == _BINARY:
            return base64.b64decode("".join(text.splitlines()), validate=True).decode("utf-8")
        if node.tag in _TAG_TYPES:
            return _read_tagged_scalar(node, text)
    except NotJSON as error:
        raise ParseError(str(error), _get_line(node)) from None
    except (binascii.Error, UnicodeDecodeError):
        raise ParseError("!!binary needs UTF-8 text, encoded in base64", _get_line(node)) from None
    raise _build_tag_error(node)


def _read_tagged_scalar(node: ScalarNode, text: str) -> Scalar:
    value = resolve_scalar(text)
    types = _TAG_TYPES[node.tag]
    is_wrong_bool = isinstance(value, bool) and bool not in types
    if not isinstance(value, types) or is_wrong_bool or (node.tag == _TIMESTAMP and not _DATE.fullmatch(text)):
        raise ParseError(f"{quote(text)} is not a {_abbreviate_tag(node.tag)}", _get_line(node))
    return value


def _build_tag_error(node: Node) -> ParseError:
    return ParseError(f"the tag {_abbreviate_tag(node.tag)} is not supported; remove it", _get_line(node))


def _abbreviate_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def _get_line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _convert_error(error: yaml.MarkedYAMLError) -> ParseError:
    line = None if error.problem_mark is None else error.problem_mark.line + 1
    problem = error.problem or error.context or "no YAML"
    if "'\\t'" in problem:
        return ParseError("a tab where YAML requires spaces; indent and separate with spaces", line)
    if "duplicate anchor" in (error.context or ""):
        return ParseError("an anchor is defined twice; choose another name", line)
    if "<document start>" in problem or "single document" in (error.context or ""):
        return ParseError("a second document after '...'; separate documents by a line with ---", line)
    return ParseError(f"not YAML: {problem}", line)
