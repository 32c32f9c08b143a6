"""`muster apply-crds`."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

import typer


def apply_crds() -> None:
    """Create the CustomResourceDefinitions on a cluster, or update them to those of this version.

    The chart runs this command before it installs or upgrades muster. A definition of a newer version stays as it is,
    because an older one would drop fields of stored jobs.
    """
    from muster.cli.crds.apply import apply_all

    typer.echo("\n".join(apply_all()))
