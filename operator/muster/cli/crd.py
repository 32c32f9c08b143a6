"""`muster crd`: the CustomResourceDefinition for `kubectl apply -f -`."""

from __future__ import annotations

import typer

from muster.api.crd import crd_yaml


def crd() -> None:
    """Print the CustomResourceDefinition."""
    typer.echo(crd_yaml(), nl=False)
