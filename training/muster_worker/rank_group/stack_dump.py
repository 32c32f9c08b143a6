"""What ranks were doing when the node was stopped, or when they fell."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from muster_worker.rank_group import activity, stacks
from muster_worker.rank_group.rank_links import RankLink

CAPTURE_SECONDS = 0.3
"""For all ranks of the node together: a stop must not wait for a rank that doesn't answer."""

_TRACEBACK = "Traceback (most recent call last):"


def activities(live: Mapping[int, RankLink]) -> Dict[int, str]:
    """What each rank's main thread is in now; ranks that can't be asked are missing."""
    files = {rank: link.hello.progress for rank, link in live.items() if link.hello is not None}
    result = {}
    for rank, dump in stacks.capture(files, CAPTURE_SECONDS).items():
        doing = activity.of_dump(dump)
        if doing is not None:
            result[rank] = doing
    return result


def activity_in(error_text: str) -> Optional[str]:
    """What a rank was in when the last exception on its standard error was raised; None when there was none."""
    start = error_text.rfind(_TRACEBACK)
    return None if start < 0 else activity.of_traceback(error_text[start:].split("\n"))
