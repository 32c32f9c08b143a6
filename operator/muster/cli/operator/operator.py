"""Run the operator's process: `muster operator`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from muster.cli.config_file import read_config_file
from muster.cli.errors import BadInput, format_os_error
from muster.cli.garbage_collection import resume_collections
from muster.cli.operator.log import LogFormat, start_log
from muster.clients.kubernetes.access import NoCluster
from muster.controller.options import OperatorOptions
from muster.controller.serve import serve
from muster.controller.startup import StartupError
from muster.controller.trust.trust import TrustError
from muster.core.shard import MAX_SHARDS, Shard
from muster.objects.kubernetes.errors import ApiError

FAILED = 1

_log = logging.getLogger(__name__)


def run_operator(options: OperatorOptions, config_file: str | None, log_format: str) -> int:
    """Run until a signal arrives; return the exit code. Raises `BadInput` for invalid options."""
    resume_collections()
    configured = apply_config_file(options, config_file)
    start_log(read_log_format(log_format))
    try:
        serve(configured)
    except NoCluster as problem:
        raise BadInput(str(problem)) from None
    except (StartupError, TrustError, ApiError) as problem:
        _log.critical("muster operator can't run here: %s", problem)
        return FAILED
    except OSError as problem:
        _log.critical("muster operator can't listen: %s", format_os_error(problem))
        return FAILED
    except ExceptionGroup as failures:
        # The kubelet restarts the operator, which continues every job from its status.
        _log.critical("muster operator failed", exc_info=failures)
        return FAILED
    return 0


def apply_config_file(options: OperatorOptions, file: str | None) -> OperatorOptions:
    """Return the options with the content of the configuration file. Raises `BadInput`."""
    config = read_config_file(file)
    if config is None:
        return options
    return replace(options, config=config)


def read_log_format(text: str) -> LogFormat:
    """Parse the value of `--log-format`. Raises `BadInput`."""
    match text:
        case "plain" | "json":
            return text
    raise BadInput(f"--log-format {text}: expected plain or json")


def read_pull_policy(text: str) -> str:
    """Parse the value of `--pull-policy`. Raises `BadInput`."""
    if text not in ("", "Always", "IfNotPresent", "Never"):
        raise BadInput(f"--pull-policy {text}: expected Always, IfNotPresent or Never")
    return text


def read_shard(text: str) -> Shard:
    """Parse the value of `--shard`. Raises `BadInput`."""
    index, separator, count = text.partition("/")
    if separator and index.isdecimal() and count.isdecimal() and int(index) < int(count) <= MAX_SHARDS:
        return Shard(int(index), int(count))
    raise BadInput(f"--shard {text}: expected INDEX/COUNT such as 0/2, with INDEX < COUNT <= {MAX_SHARDS}")


def read_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse the values of `--collector-address`, each a comma-separated list of addresses. Raises `BadInput`."""
    result = [part.strip() for text in texts for part in text.split(",")]
    for address in result:
        try:
            ip_address(address)
        except ValueError:
            raise BadInput(f"--collector-address {address}: expected an IPv4 or IPv6 address") from None
    return tuple(dict.fromkeys(result))


def read_collector_url(text: str | None) -> str | None:
    """Parse the value of `--collector-url`. Raises `BadInput`."""
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
    if not is_valid or parts.path not in ("", "/") or parts.query:
        raise BadInput(f"--collector-url {text}: expected https://<host>:<port>, as agents in the jobs' pods reach it")
    return text.rstrip("/")
