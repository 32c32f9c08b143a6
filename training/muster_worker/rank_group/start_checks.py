"""The checks before a node starts its ranks: the connection to node 0, and the network check."""

from __future__ import annotations

import selectors
import time
from typing import List, Mapping, Optional

from muster_worker.agent.log import Log
from muster_worker.agent.state import Event, NetworkMeasured, ProblemFound
from muster_worker.contract.schema import AgentProblem
from muster_worker.launchers.environment import NodeContext
from muster_worker.network.check_process import CheckProcess, start_check
from muster_worker.network.check_results import format_figures
from muster_worker.network.reachability import ReachabilityCheck


class StartChecks:
    """The checks of one attempt. `has_failed` is set if the ranks can't start."""

    def __init__(
        self, context: NodeContext, base_environment: Mapping[str, str], selector: selectors.BaseSelector, log: Log
    ) -> None:
        self._context = context
        self._base_environment = base_environment
        self._selector = selector
        self._log = log
        self._reachability_check: Optional[ReachabilityCheck] = None  # on other nodes than 0
        self._network_check: Optional[CheckProcess] = None  # after that, if the job enables it
        self.is_over = False
        self.has_failed = False
        if context.node == 0:
            self._start_network_check()
        else:
            # Ranks that can't reach the rendezvous would wait until their own timeout of half an hour.
            own_peer, first_peer = context.peers[context.node], context.master
            self._reachability_check = ReachabilityCheck(own_peer, first_peer, selector, time.monotonic())

    @property
    def next_poll_at(self) -> float:
        """When `poll` is due (monotonic time)."""
        check = self._reachability_check or self._network_check
        return time.monotonic() if check is None else check.next_poll_at

    def poll(self) -> List[Event]:
        """Continue the checks."""
        if self._reachability_check is not None:
            return self._check_peer(self._reachability_check)
        return [] if self._network_check is None else self._check_network(self._network_check)

    def cancel(self) -> None:
        """End the checks without a result."""
        if self._network_check is not None:
            self._network_check.close()
            self._network_check = None
        if self._reachability_check is not None:
            self._reachability_check.close()
            self._reachability_check = None

    def _start_network_check(self) -> None:
        if self._context.plan.network_check:
            try:
                self._network_check = start_check(self._context, self._base_environment, self._selector)
            except OSError as error:
                self._log.print_line(f"no network check: {error}")
        self.is_over = self._network_check is None

    def _check_peer(self, check: ReachabilityCheck) -> List[Event]:
        check.poll(time.monotonic())
        if check.is_reachable:
            self._reachability_check = None
            self._start_network_check()
        elif check.problem is not None:
            self._reachability_check = None
            return self._fail(check.problem)
        return []

    def _fail(self, problem: AgentProblem) -> List[Event]:
        self._log.print_line(problem.message)
        self.is_over = self.has_failed = True
        return [ProblemFound(problem)]

    def _check_network(self, check: CheckProcess) -> List[Event]:
        check.poll(time.monotonic())
        if check.figures is None:
            return []
        self._network_check = None
        self._log.print_line(format_figures(check.figures))
        # Start the ranks with any result: a slow job is better than no job.
        self.is_over = True
        return [NetworkMeasured(check.figures)]
