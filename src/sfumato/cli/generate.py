"""``sfumato generate``: synthetic tables with their policies and taxonomies."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.flags import Force, Json
from sfumato.cli.output import TextConsole, print_json, saying_replaced, version_and_seconds
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_files


def generate(
    generator: Annotated[str, typer.Argument(metavar="hospital|census|agrawal|normal", help="The kind of table.")],
    records: Annotated[int, typer.Option("-n", "--records", metavar="N", help="How many records.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".parquet, .csv, .csv.gz or .csv.zst; .csv or .xlsx with --flaws",
            readable=False,
        ),
    ],
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same table.")] = 0,
    stays: Annotated[
        int | None,
        typer.Option(
            "--stays",
            metavar="N",
            rich_help_panel="hospital",
            help="How many stays a patient may have: 1 by default, 2 with --flaws.",
        ),
    ] = None,
    flaws: Annotated[
        bool,
        typer.Option(
            "--flaws",
            rich_help_panel="hospital",
            help="Write the export of a German system instead, without a policy: cp1252, semicolons, decimal commas, "
            "points between thousands, NA, ? and -999 for missing values, names, free text; as .xlsx below a title.",
        ),
    ] = False,
    function: Annotated[
        str | None,
        typer.Option(
            "--function",
            metavar="NAME",
            rich_help_panel="agrawal",
            help="The function that labels the records: C2 to C7, C9, R7 or R10.",
        ),
    ] = None,
    salary: Annotated[
        str | None,
        typer.Option(
            "--salary", metavar="uniform|normal", rich_help_panel="agrawal", help="The distribution of the salary."
        ),
    ] = None,
    random_constants: Annotated[
        bool,
        typer.Option(
            "--random-constants",
            rich_help_panel="agrawal",
            help="Draw the constants of C2 to C6 at random, from the seed.",
        ),
    ] = False,
    dimensions: Annotated[
        int | None,
        typer.Option("--dimensions", metavar="D", rich_help_panel="normal", help="How many quasi-identifiers."),
    ] = None,
    mean: Annotated[
        float | None, typer.Option("--mean", metavar="M", rich_help_panel="normal", help="The mean of every column.")
    ] = None,
    deviation: Annotated[
        float | None,
        typer.Option(
            "--deviation", metavar="S", rich_help_panel="normal", help="The standard deviation of every column."
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a table of synthetic records with its policy and taxonomies. No real person is in it.

    Example: sfumato generate hospital -n 5000 -o patients.csv

    With --flaws: sfumato generate hospital -n 5000 --flaws -o export.csv
    """
    all_options = {
        "stays": stays,
        "function": function,
        "salary": salary,
        "random_constants": random_constants or None,
        "dimensions": dimensions,
        "mean": mean,
        "deviation": deviation,
    }
    options = {name: value for name, value in all_options.items() if value is not None}
    with terminal_progress() as progress, progress.phase("generate"):
        from sfumato.synthetic import GENERATORS
        from sfumato.synthetic import generate as generate_files
        from sfumato.synthetic.generate import policy_beside
        from sfumato.synthetic.hospital_export import HospitalExport

        with saying_replaced(*([output] if flaws else [output, policy_beside(output)])):
            files = generate_files(generator, records, output, seed=seed, force=force, flaws=flaws, **options)
    made_by = HospitalExport if flaws else GENERATORS[generator]
    if json:
        print_json(
            {
                "generator": generator,
                "generator_version": made_by.version,
                "records": records,
                "seed": seed,
                "options": options | ({"flaws": True} if flaws else {}),
                "files": [str(file) for file in files],
                **version_and_seconds(progress),
            },
            files,
        )
    else:
        console = TextConsole()
        console.heading(f"{records:,} synthetic records by {made_by.name}, version {made_by.version}")
        show_files(console, files)
        table, *others = (shlex.quote(str(file)) for file in files)
        if flaws:
            console.print(f"next    sfumato policy {table} -o policy.toml")
        else:
            console.print(f"next    sfumato anonymize {table} --policy {others[0]} -o release.parquet")
