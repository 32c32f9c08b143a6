"""Limit the memory of the facts about agents. Each namespace has a share. No I/O."""

from muster.collector.memory_limits import MemoryLimits, ObjectSize
from muster.core.facts import AgentFacts
from muster.core.reports.texts import drop_texts, measure_facts, measure_texts

_MIB = 1024 * 1024


class NoMemory(Exception):
    """The facts about the namespace's agents take all the memory that is left for them."""


class AgentMemory:
    """Reserves memory for the texts in agents' facts, and for the facts without them."""

    def __init__(self, text_limits: MemoryLimits | None, fact_limits: MemoryLimits | None) -> None:
        self.texts = text_limits or MemoryLimits(per_namespace=48 * _MIB, total=144 * _MIB, guaranteed=_MIB)
        # The largest job, 100,000 ranks on 10,000 nodes, takes 105 MiB.
        self.facts = fact_limits or MemoryLimits(per_namespace=112 * _MIB, total=160 * _MIB, guaranteed=2 * _MIB)

    def reserve(self, key: str, namespace: str, agent: AgentFacts) -> AgentFacts:
        """Reserve memory for an agent's new facts. Return them, without texts if there is too little.

        Raises `NoMemory` if there is too little even without texts. The reservation of the earlier facts stays.
        """
        if not self.facts.resize(key, ObjectSize(namespace, measure_facts(agent))):
            raise NoMemory(f"no memory is left for the reports of namespace {namespace}")
        fits = self.texts.reserve(key, ObjectSize(namespace, measure_texts(agent)))
        return agent if fits else drop_texts(agent)

    def release(self, key: str) -> None:
        """Release an agent's memory."""
        self.facts.release(key)
        self.texts.release(key)
