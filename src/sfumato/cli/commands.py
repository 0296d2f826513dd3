"""All commands in the order of the help. Each loads what it needs when it runs, so that help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato._version import __version__
from sfumato.cli.aggregate import aggregate
from sfumato.cli.anonymize import anonymize
from sfumato.cli.app import serve_page
from sfumato.cli.audit import audit
from sfumato.cli.bound import bound
from sfumato.cli.codebook import codebook
from sfumato.cli.compare import compare
from sfumato.cli.demo import demo
from sfumato.cli.evaluate import evaluate
from sfumato.cli.generate import generate
from sfumato.cli.key import key
from sfumato.cli.linked import linked
from sfumato.cli.measure import measure
from sfumato.cli.methods import methods
from sfumato.cli.plot import plot
from sfumato.cli.policy import propose
from sfumato.cli.report import report_release
from sfumato.cli.risk import risk
from sfumato.cli.rules import apply, fit
from sfumato.cli.runs import runs
from sfumato.cli.taxonomy import taxonomy
from sfumato.cli.tradeoff import tradeoff

# All paths are declared with readable=False: Typer would report a file that may not be read as a wrong flag (exit code
# 2), but it is an input that cannot be read (4), and an output need not be readable at all.
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def sfumato(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Anonymize microdata: blur quasi-identifiers until at least k records look alike, check it, measure the loss.

    Example: sfumato anonymize patients.csv -o release.csv --quasi-identifiers age,zip,sex --other keep -k 10
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


app.command()(anonymize)
app.command()(linked)
app.command()(audit)
app.command()(measure)
app.command()(aggregate)
app.command()(fit)
app.command()(apply)
app.command()(bound)
app.command()(compare)
app.command()(tradeoff)
app.command()(evaluate)
app.command()(plot)
app.command("policy")(propose)
app.command()(taxonomy)
app.command()(risk)
app.command("report")(report_release)
app.command()(runs)
app.command()(codebook)
app.command()(key)
app.command("app")(serve_page)
app.command()(generate)
app.command()(methods)
app.command()(demo)
