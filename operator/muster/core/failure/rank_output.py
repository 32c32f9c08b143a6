"""Parse the last output lines of a process: find the error, and whether it comes from a lost peer.

The lines come from untrusted programs, so they are sanitized before use.
"""

import re
from functools import lru_cache

from muster_worker.contract.error_text import FRAME_MARKS, ErrorReader

_CACHE_SIZE = 2048
"""The size of each cache, which takes at most a few MiB.

Ranks that fail together print the same lines, and each reconciliation reads them several times.
"""

MAX_CHARS = 300
"""Maximum length of a line, so that a message stays below 1 KiB."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
_RANK_PREFIX = re.compile(r"^\[(?:rank|Rank )?\d+\]:\s*")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning)(?=:|$)")
_WARNING = re.compile(r"^[\w.]*Warning\b")

# Errors that point to another process: a peer, the store on rank 0, or the launcher has ended.
_LOST_PEER_PATTERN = re.compile(
    r"""
    connection\ (?:was\ )?(?:closed|reset|aborted|refused|lost|timed\ out)
    | Connection(?:Reset|Aborted|Refused)Error | BrokenPipeError | broken\ pipe
    | (?:peer|socket|remote\ end)\ closed | closed\ by\ (?:the\ )?(?:peer|remote)
    | ncclRemoteError | remote\ process\ exit | NCCL\ communicator\ was\ aborted | ncclCommAbort
    | Dist(?:Network|Store)Error | TCPStore | failed\ to\ recv,\ got\ 0\ bytes | recvValue
    | Application\ timeout\ caused\ pair\ closure | Timed\ out\ waiting\ \d+\s?ms\ for\ (?:recv|send)
    | collective\ operation\ timeout
    | MPI_ERR_PROC_FAILED
    | SignalException | KeyboardInterrupt
    """,
    re.IGNORECASE | re.VERBOSE,
)

# Output of an mpirun that ends because of a rank: Open MPI 4 and 5 (under any command name), Hydra.
_FAILED_RANK_PATTERN = re.compile(
    r"""
    noticed\ that\ process\ rank\ \d | has\ exited\ due\ to\ process\ rank\ \d
    | detected\ that\ one\ or\ more\ processes\ exited | process(?:es)?\ returned\ a\ non-zero\ exit\ code
    | \*\*\*\ reported\ by\ process\ \[ | MPI_ERRORS_ARE_FATAL\ \(processes
    | terminated\ by\ signals\ sent\ by | MPI_ABORT\ was\ invoked\ on\ rank | process\ to\ do\ so\ was
    | BAD\ TERMINATION\ OF\ ONE\ OF\ YOUR\ APPLICATION | APPLICATION\ TERMINATED\ WITH\ THE\ EXIT\ STRING
    """,
    re.IGNORECASE | re.VERBOSE,
)

# Output of the aborting rank itself: MPICH and Intel MPI, Open MPI.
_ABORT_PATTERN = re.compile(r"application called MPI_Abort\(|MPI_ABORT was invoked on rank")

_RULER = re.compile(r"[\W_]*")
_SEPARATOR_LINE = re.compile(r"[-=*_ ]*")
_MUSTER_PREFIX = "muster: "

_COLLECTIVE = re.compile(
    r"\b(?:in |\.)(all_reduce|all_gather|all_gather_into_tensor|all_to_all|all_to_all_single|reduce_scatter"
    r"|reduce_scatter_tensor|broadcast|barrier|monitored_barrier|reduce|gather|scatter|send|recv"
    r"|init_process_group|destroy_process_group|backward)\b"
)


def sanitize_line(text: str, limit: int = MAX_CHARS) -> str:
    """Return one printable line of at most `limit` characters, without escape sequences or direction marks."""
    # Plain lines need no regular expressions, and a thousand failing nodes send 100,000 lines.
    plain = text.isascii() and text.isprintable()
    line = " ".join(text.split()) if plain else _UNPRINTABLE.sub(" ", _ESCAPES.sub("", text)).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def get_message(error: str) -> str:
    """Return the message of a rank's own error: its first line. The others only show whether it lost a peer."""
    return sanitize_line(error.partition("\n")[0])


@lru_cache(_CACHE_SIZE)
def find_error_line(lines: tuple[str, ...]) -> str:
    """Return the last line that names an exception, or else the last line with a text of its own; "" without lines.

    Frames of a stack and rulers have none.
    """
    cleaned = _sanitize_lines(lines)
    index = _find_exception_index(cleaned)
    if index is not None:
        return sanitize_line(cleaned[index])
    texts = [line for line in cleaned if not (line.startswith(FRAME_MARKS) or _RULER.fullmatch(line))]
    return sanitize_line((texts or cleaned)[-1]) if cleaned else ""


@lru_cache(_CACHE_SIZE)
def contains_exception(lines: tuple[str, ...]) -> bool:
    """Whether the last lines contain an exception."""
    return _find_exception_index(_sanitize_lines(lines)) is not None


@lru_cache(_CACHE_SIZE)
def mentions_lost_peer(lines: tuple[str, ...]) -> bool:
    """Whether the last lines report a lost peer, store or launcher.

    If the lines contain an exception, check only the lines from there on, because an earlier lost connection is not
    the cause.
    """
    cleaned = _sanitize_lines(lines)
    index = _find_exception_index(cleaned)
    return any(_LOST_PEER_PATTERN.search(line) for line in cleaned[index or 0 :])


@lru_cache(_CACHE_SIZE)
def mentions_failed_rank(lines: tuple[str, ...]) -> bool:
    """Whether mpirun reports that it ended because of one of its ranks."""
    return any(_FAILED_RANK_PATTERN.search(line) for line in _sanitize_lines(lines))


@lru_cache(_CACHE_SIZE)
def contains_abort(lines: tuple[str, ...]) -> bool:
    """Whether the last lines show that the rank itself called MPI_Abort."""
    return any(_ABORT_PATTERN.search(line) for line in _sanitize_lines(lines))


@lru_cache(_CACHE_SIZE)
def find_error_text(lines: tuple[str, ...]) -> str:
    """Return why mpirun ended: muster's own message, or a rank's exception, or the whole output as one line."""
    cleaned = [line for line in _sanitize_lines(lines) if not _SEPARATOR_LINE.fullmatch(line)]
    muster_lines = [line for line in cleaned if line.startswith(_MUSTER_PREFIX)]
    if muster_lines:
        return sanitize_line(muster_lines[-1].removeprefix(_MUSTER_PREFIX))
    return find_error_line(lines) if contains_exception(lines) else sanitize_line(" ".join(cleaned))


@lru_cache(_CACHE_SIZE)
def find_collective(lines: tuple[str, ...]) -> str | None:
    """Return the innermost collective in the last traceback, such as "all_reduce"; None without one."""
    for line in reversed(_sanitize_lines(lines)):
        match = _COLLECTIVE.search(line)
        if match:
            return match.group(1)
    return None


@lru_cache(_CACHE_SIZE)
def normalize_error_line(lines: tuple[str, ...]) -> str:
    """Return the error line without numbers, for comparison: addresses, ports and indices differ between ranks."""
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "#", find_error_line(lines))


def _sanitize_lines(lines: tuple[str, ...]) -> list[str]:
    return [cleaned for line in lines if (cleaned := _strip_rank_prefix(line))]


@lru_cache(_CACHE_SIZE)
def _strip_rank_prefix(line: str) -> str:
    # Remove torch's prefix of tracebacks, "[rank3]: ", with which equal errors would differ between ranks.
    return _RANK_PREFIX.sub("", sanitize_line(line, limit=2000))


def _find_exception_index(cleaned_lines: list[str]) -> int | None:
    reader, last = ErrorReader(), None
    for index, line in enumerate(cleaned_lines):
        if reader.feed(line) and reader.error == line:
            last = index
    if last is not None:
        return last
    for index in range(len(cleaned_lines) - 1, -1, -1):
        if _EXCEPTION.match(cleaned_lines[index]) and not _WARNING.match(cleaned_lines[index]):
            return index
    return None
