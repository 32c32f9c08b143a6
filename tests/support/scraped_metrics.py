"""A scrape of the operator's metrics, parsed by Prometheus' own library."""

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Scrape:
    """The metrics of one scrape, by name."""

    families: Mapping[str, Metric]

    def get_value(self, name: str, **labels: str) -> float | None:
        """Return the sum of the samples with this name and these labels; None without such a sample."""
        samples = (sample for family in self.families.values() for sample in family.samples if sample.name == name)
        values = [sample.value for sample in samples if labels.items() <= sample.labels.items()]
        return sum(values) if values else None


def parse_scrape(text: str) -> Scrape:
    """Parse a scrape. Raises ValueError if it is malformed."""
    return Scrape({family.name: family for family in text_string_to_metric_families(text)})
