"""What a process said last: the line that tells why it ended, and whether that line names a peer.

The lines come from untrusted programs, so they are cleaned before anybody shows them.
"""

import re
from functools import lru_cache

_REMEMBERED = 2048
"""Ranks that fail together say the same, and each is looked at several times a turn; 2,048 are at most a few MiB."""

MAX_CHARS = 300
"""A line in a message is cut there, so that a message stays under 1 KiB with all else it says."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
_RANK_PREFIX = re.compile(r"^\[(?:rank|Rank )?\d+\]:\s*")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning)(?=:|$)")
_WARNING = re.compile(r"^[\w.]*Warning\b")

# What a rank says when the fault is elsewhere: its peer, the store on rank 0, or its launcher is gone.
_BLAMES_A_PEER = re.compile(
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

# What mpirun says when it ends because a rank did: Open MPI 4 and 5 (under whatever name it was started), Hydra.
_BLAMES_A_RANK = re.compile(
    r"""
    noticed\ that\ process\ rank\ \d | has\ exited\ due\ to\ process\ rank\ \d
    | detected\ that\ one\ or\ more\ processes\ exited | process(?:es)?\ returned\ a\ non-zero\ exit\ code
    | \*\*\*\ reported\ by\ process\ \[ | MPI_ERRORS_ARE_FATAL\ \(processes
    | terminated\ by\ signals\ sent\ by | MPI_ABORT\ was\ invoked\ on\ rank | process\ to\ do\ so\ was
    | BAD\ TERMINATION\ OF\ ONE\ OF\ YOUR\ APPLICATION | APPLICATION\ TERMINATED\ WITH\ THE\ EXIT\ STRING
    """,
    re.IGNORECASE | re.VERBOSE,
)

# What the rank itself says: MPICH and Intel MPI, Open MPI.
_CALLS_ABORT = re.compile(r"application called MPI_Abort\(|MPI_ABORT was invoked on rank")

_RULE = re.compile(r"[-=*_ ]*")
_OWN = "muster: "

_COLLECTIVE = re.compile(
    r"\b(?:in |\.)(all_reduce|all_gather|all_gather_into_tensor|all_to_all|all_to_all_single|reduce_scatter"
    r"|reduce_scatter_tensor|broadcast|barrier|monitored_barrier|reduce|gather|scatter|send|recv"
    r"|init_process_group|destroy_process_group|backward)\b"
)


def clean(text: str, limit: int = MAX_CHARS) -> str:
    """One printable line of at most `limit` characters: no escape sequences, control or direction characters."""
    # Most lines hold nothing that has to go; a thousand nodes that fail send 100,000 of them.
    plain = text.isascii() and text.isprintable()
    line = " ".join(text.split()) if plain else _UNPRINTABLE.sub(" ", _ESCAPES.sub("", text)).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


@lru_cache(_REMEMBERED)
def telling_line(lines: tuple[str, ...]) -> str:
    """The line that tells why: the last that names an exception, else the last that isn't empty; "" for none."""
    cleaned = _cleaned(lines)
    index = _exception_index(cleaned)
    if index is not None:
        return clean(cleaned[index])
    return clean(cleaned[-1]) if cleaned else ""


@lru_cache(_REMEMBERED)
def names_exception(lines: tuple[str, ...]) -> bool:
    """Whether the process told of an exception of its own at its end."""
    return _exception_index(_cleaned(lines)) is not None


@lru_cache(_REMEMBERED)
def names_a_peer(lines: tuple[str, ...]) -> bool:
    """Whether the last words say that a peer, the store or the launcher was gone.

    With an exception named only what it says counts: a lost connection that was logged before isn't the end's cause.
    """
    cleaned = _cleaned(lines)
    index = _exception_index(cleaned)
    return any(_BLAMES_A_PEER.search(line) for line in cleaned[index or 0 :])


@lru_cache(_REMEMBERED)
def names_a_rank(lines: tuple[str, ...]) -> bool:
    """Whether an mpirun says that it ended because one of its ranks did."""
    return any(_BLAMES_A_RANK.search(line) for line in _cleaned(lines))


@lru_cache(_REMEMBERED)
def calls_abort(lines: tuple[str, ...]) -> bool:
    """Whether a rank's last words are those of MPI_Abort, which it called itself."""
    return any(_CALLS_ABORT.search(line) for line in _cleaned(lines))


@lru_cache(_REMEMBERED)
def telling_paragraph(lines: tuple[str, ...]) -> str:
    """Why an mpirun ended: what muster said, else the exception of a rank that printed through it, else all it said.

    Its own sentences go over several lines.
    """
    cleaned = [line for line in _cleaned(lines) if not _RULE.fullmatch(line)]
    own = [line for line in cleaned if line.startswith(_OWN)]
    if own:
        return clean(own[-1].removeprefix(_OWN))
    return telling_line(lines) if names_exception(lines) else clean(" ".join(cleaned))


@lru_cache(_REMEMBERED)
def collective(lines: tuple[str, ...]) -> str | None:
    """The innermost collective that a traceback in the last words names: "all_reduce"."""
    for line in reversed(_cleaned(lines)):
        match = _COLLECTIVE.search(line)
        if match:
            return match.group(1)
    return None


@lru_cache(_REMEMBERED)
def likeness(lines: tuple[str, ...]) -> str:
    """The telling line without its numbers: ranks that fail the same way differ in addresses, ports and indices."""
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "#", telling_line(lines))


def _cleaned(lines: tuple[str, ...]) -> list[str]:
    return [cleaned for line in lines if (cleaned := _without_rank(line))]


@lru_cache(_REMEMBERED)
def _without_rank(line: str) -> str:
    # torch prefixes tracebacks with "[rank3]: ", which would make the same line differ between ranks
    return _RANK_PREFIX.sub("", clean(line, limit=2000))


def _exception_index(cleaned: list[str]) -> int | None:
    for index in range(len(cleaned) - 1, -1, -1):
        if _EXCEPTION.match(cleaned[index]) and not _WARNING.match(cleaned[index]):
            return index
    return None
