"""docs/permissions.md lists each permission that the chart gives, and no other."""

import itertools
import re

from cluster import chart, rights
from cluster.helm import Values
from cluster.places import ROOT
from cluster.rights import EVERYWHERE, Grant

ACCOUNT = f"{chart.NAMESPACE}:muster"
OPTIONS: dict[str, Values] = {
    "`queues.volcano`": {"queues": {"volcano": True}},
    "`queues.coscheduling`": {"queues": {"coscheduling": True}},
    "`gitSecrets`": {"gitSecrets": [{"namespace": "team", "names": ["git-token"]}]},
    "`disruptions.taints`": {"disruptions": {"taints": ["karpenter.sh/disrupted"]}},
    "`webhook.enabled`": {"webhook": {"enabled": True}},
}
ROW = re.compile(
    r"^\| ([a-z, ]+) \| ([a-z/.0-9-]+)((?:,? `[^`]+`)*) \| (jobs|own|cluster)(?:, (`[^`]+`))? \| (.+) \|$", re.MULTILINE
)


def granted(values: Values) -> set[tuple[str, str, str, str]]:
    image: Values = {"image": {"repository": "registry.example/muster"}, "namespaces": ["team"]}
    return {
        (grant.verb, f"{grant.resource}.{grant.group}".rstrip("."), name, where(grant))
        for grant in rights.grants(chart.render({**image, **values}), ACCOUNT)
        for name in grant.names or ("",)
    }


def where(grant: Grant) -> str:
    return {EVERYWHERE: "cluster", chart.NAMESPACE: "own", "team": "jobs"}[grant.namespace]


def test_the_table_is_what_the_chart_gives() -> None:
    text = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")
    fields: dict[str, set[tuple[str, str, str, str]]] = {"": set(), **{option: set() for option in OPTIONS}}
    for verbs, resource, names, place, option, why in ROW.findall(text):
        assert why
        for verb, name in itertools.product(verbs.split(", "), re.findall(r"`([^`]+)`", names) or [""]):
            fields[option].add(
                (verb, resource, name.replace("<namespace>", chart.NAMESPACE).replace("<token>", "git-token"), place)
            )
    always = granted({})
    assert fields[""] == always
    for option, values in OPTIONS.items():
        assert fields[option] == granted(values) - always, option
