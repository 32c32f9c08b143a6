"""docs/permissions.md lists each permission that the chart gives, and no other."""

import itertools
import re

from cluster import chart, rights
from cluster.helm import Values
from cluster.places import ROOT
from cluster.rights import EVERYWHERE, Grant

ACCOUNT = f"{chart.NAMESPACE}:muster"
BOARD_ACCOUNT = f"{chart.NAMESPACE}:muster-board"
BOARD_TITLE = "## The board's account"
OPTIONS: dict[str, Values] = {
    "`queues.volcano`": {"queues": {"volcano": True}},
    "`queues.coscheduling`": {"queues": {"coscheduling": True}},
    "`gitSecrets`": {"gitSecrets": [{"namespace": "team", "names": ["git-token"]}]},
    "`disruptions.taints`": {"disruptions": {"taints": ["karpenter.sh/disrupted"]}},
    "`webhook.enabled`": {"webhook": {"enabled": True}},
}
BOARD_OPTIONS: dict[str, Values] = {
    "`board.enabled`": {"board": {"enabled": True}},
    "`board.logs`": {"board": {"enabled": True, "logs": True}},
}
ROW = re.compile(
    r"^\| ([a-z, ]+) \| ([a-z/.0-9-]+)((?:,? `[^`]+`)*) \| (jobs|own|cluster)(?:, (`[^`]+`))? \| (.+) \|$", re.MULTILINE
)


def granted(values: Values, account: str = ACCOUNT) -> set[tuple[str, str, str, str]]:
    image: Values = {"image": {"repository": "registry.example/muster"}, "namespaces": ["team"]}
    return {
        (grant.verb, f"{grant.resource}.{grant.group}".rstrip("."), name, where(grant))
        for grant in rights.grants(chart.render({**image, **values}), account)
        for name in grant.names or ("",)
    }


def where(grant: Grant) -> str:
    return {EVERYWHERE: "cluster", chart.NAMESPACE: "own", "team": "jobs"}[grant.namespace]


def read_table(text: str, options: dict[str, Values]) -> dict[str, set[tuple[str, str, str, str]]]:
    """Return the permissions in a table, by the option that adds them."""
    fields: dict[str, set[tuple[str, str, str, str]]] = {"": set(), **{option: set() for option in options}}
    for verbs, resource, names, place, option, why in ROW.findall(text):
        assert why
        for verb, name in itertools.product(verbs.split(", "), re.findall(r"`([^`]+)`", names) or [""]):
            fields[option].add(
                (verb, resource, name.replace("<namespace>", chart.NAMESPACE).replace("<token>", "git-token"), place)
            )
    return fields


def read_tables() -> tuple[str, str]:
    """Return the part of the page about the operator's account, and the one about the board's."""
    text = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")
    operator, title, board = text.partition(BOARD_TITLE)
    assert title
    return operator, board


def test_the_table_is_what_the_chart_gives() -> None:
    fields = read_table(read_tables()[0], OPTIONS)
    always = granted({})
    assert fields[""] == always
    for option, values in OPTIONS.items():
        assert fields[option] == granted(values) - always, option


def test_the_board_s_table_is_what_the_chart_gives() -> None:
    fields = read_table(read_tables()[1], BOARD_OPTIONS)
    assert fields[""] == granted({}, BOARD_ACCOUNT) == set()
    known: set[tuple[str, str, str, str]] = set()
    for option, values in BOARD_OPTIONS.items():
        known |= fields[option]
        assert known == granted(values, BOARD_ACCOUNT), option
        assert granted(values) == granted({}), "the board adds nothing to the operator's account"
