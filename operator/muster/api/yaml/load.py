"""Split a file's text into documents, as kubectl does."""

from dataclasses import dataclass

from muster.api.document import Document, FieldPath
from muster.api.yaml.json_reader import read_json
from muster.api.yaml.reader import ParseError, read_yaml

MAX_TEXT_BYTES = 1024 * 1024
"""Maximum size of a file. etcd stores no resource above 1.5 MiB."""

_SEPARATOR = "---"


class NotReadable(Exception):
    """The text is neither YAML nor JSON. The message begins with the file and the line: `job.yaml:12`."""

    def __init__(self, source: str, line: int | None, message: str) -> None:
        super().__init__(f"{source}: {message}" if line is None else f"{source}:{line}: {message}")
        self.source = source
        self.line = line
        self.message = message


@dataclass(frozen=True)
class _Chunk:
    text: str
    lines_before: int


def load_documents(text: str, source: str) -> list[Document]:
    """Return all documents of `text` that are not empty. `source` is the file's name in messages.

    The text is a stream of JSON objects or of YAML documents between lines of `---`. Raises `NotReadable`.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise NotReadable(
            source, None, f"the file has more than {MAX_TEXT_BYTES} bytes; move code and data to other files"
        )
    text = text.removeprefix("\ufeff")
    documents: list[Document] = []
    try:
        position = _load_json(text, source, documents)
    except ParseError as error:
        raise NotReadable(source, error.line, error.message) from None
    for chunk in _split_chunks(text[position:], text.count("\n", 0, position), source):
        document = _load_chunk(chunk, source)
        if document is not None:
            documents.append(document)
    return documents


def decode_documents(data: bytes, source: str) -> list[Document]:
    """Decode a file's bytes, and load its documents. Raises `NotReadable` also for bytes that are not UTF-8."""
    try:
        return load_documents(data.decode("utf-8"), source)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotReadable(source, line, f"byte {data[error.start]:#04x} is not UTF-8; save the file as UTF-8") from None


def _load_json(text: str, source: str, documents: list[Document]) -> int:
    """Parse the JSON objects at the beginning of `text`; return the position of the first other text."""
    position = 0
    while True:
        start = position + len(text[position:]) - len(text[position:].lstrip())
        document = read_json(text, start) if text.startswith("{", start) else None
        if document is None:
            return position
        value, position = document
        documents.append(Document(value=value, source=source))


def _split_chunks(text: str, lines_before: int, source: str) -> list[_Chunk]:
    # kubectl splits at separator lines before it parses YAML, even within block scalars.
    chunks: list[_Chunk] = []
    lines: list[str] = []
    start = lines_before
    for number, line in enumerate(text.split("\n"), lines_before):
        if not line.startswith(_SEPARATOR):
            lines.append(line)
            continue
        remainder = line.removeprefix(_SEPARATOR).strip()
        if remainder and not remainder.startswith("#"):
            raise NotReadable(source, number + 1, "--- must be alone on its line; move the rest to the next line")
        chunks.append(_Chunk("\n".join(lines) + "\n", start))
        lines = []
        start = number + 1
    chunks.append(_Chunk("\n".join(lines), start))
    return chunks


def _load_chunk(chunk: _Chunk, source: str) -> Document | None:
    try:
        parsed_yaml = read_yaml(chunk.text)
    except ParseError as error:
        line = None if error.line is None else error.line + chunk.lines_before
        raise NotReadable(source, line, error.message) from None
    if parsed_yaml is None or parsed_yaml[0] is None:
        return None
    value, relative_lines = parsed_yaml
    lines: dict[FieldPath, int] = {path: line + chunk.lines_before for path, line in relative_lines.items()}
    return Document(value=value, source=source, lines=lines)
