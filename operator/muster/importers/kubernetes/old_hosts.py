"""Report host names of the old pods in commands and variables: muster's pods have other names. Pure."""

from __future__ import annotations

import re

from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.report import Report


def report_old_hosts(draft: Draft, suffix: str, report: Report) -> None:
    """Report the hosts whose names consist of the job's name and the regular expression `suffix`."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(draft.name)}-{suffix}(?![\w-])")
    for path, text in draft.list_texts():
        match = pattern.search(text)
        if match is not None:
            report.add(
                draft.find_origin(path),
                f"found the host {match[0]}, which doesn't exist in muster; use MASTER_ADDR, or algo-1, algo-2, ...",
            )
