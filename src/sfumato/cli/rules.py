"""``sfumato fit`` learns a recoding and writes its rules; ``sfumato apply`` releases further records under them."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._version import __version__
from sfumato.cli.flags import EVERY_FLAG, OUTPUT_HELP, READ_WITH, InputTable, Json, PolicyFile, Temporary, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.summaries import show_files, show_release
from sfumato.errors import UsageError
from sfumato.tables.locations import location_of, release_files

if TYPE_CHECKING:
    from sfumato.releases.recoding import Recoding

# Rules always show regions.
FLAGS = tuple(name for name in EVERY_FLAG if name != "boxes")
TABLE = "your_table"


@with_flags(*FLAGS)
def fit(
    table: InputTable,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="RULES.json", help="The rules; not to be shared.", readable=False),
    ],
    sql: Annotated[
        Path | None,
        typer.Option("--sql", metavar="FILE.sql", help="Also the rules as a query over a database.", readable=False),
    ] = None,
    dialect: Annotated[str, typer.Option("--dialect", metavar="duckdb|postgresql", help="Of the query.")] = "duckdb",
    sql_table: Annotated[str, typer.Option("--table", metavar="NAME", help="The table that the query reads.")] = TABLE,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    temporary: Temporary = None,
    json: Json = False,
) -> None:
    """Learn regions of the quasi-identifiers on one table, to recode further records by: `sfumato apply`.

    Writes no release of INPUT. The method has to be one with regions; the default is mondrian, which also learns on
    tables larger than memory, with the same rules.

    Example: sfumato fit patients.csv -o rules.json --quasi-identifiers age,zip --sensitive diagnosis -k 25
    """
    with progress_for_people() as progress:
        from sfumato.pipeline.plan import fit_recoding
        from sfumato.policy import Policy, merge_flags
        from sfumato.releases.rules import check_rules_target, write_query
        from sfumato.releases.rules_sql import check_dialect

        asked = merge_flags(None if policy is None else Policy.load(policy), **flags)
        asked.check_complete()
        if temporary is not None:
            tempfile.tempdir = str(temporary)
        check_dialect(dialect)
        targets = [output, *([] if sql is None else [sql])]
        if len({target.absolute() for target in targets}) < len(targets):
            raise UsageError("the rules and the query have the same name. Give each a file of its own.")
        for target in targets:
            check_rules_target(table, target)
        recoding = fit_recoding(table, asked, progress)
        with progress.phase("write"):
            recoding.write(output)
            if sql is not None:
                write_query(recoding.to_sql(dialect, sql_table), sql)
    seconds = {name: round(value, 4) for name, value in progress.seconds.items()}
    if json:
        engine = progress.told["engine"]["engine"]
        ran = {"engine": engine, "files": list(map(str, targets)), "version": __version__, "seconds": seconds}
        print_json({**_summary(recoding), **ran})
        return
    console = People()
    names = ", ".join(domain.name for domain in recoding.domains)
    console.heading(f"{len(recoding):,} regions over {names}, learnt by {recoding.method}")
    console.print(
        "the rules hold bounds of regions and names of categories, which are values of the table: keep them to yourself"
    )
    show_files(console, targets)
    console.print(f"next    sfumato apply {shlex.quote(str(output))} NEW -o RELEASE")


def _summary(recoding: Recoding) -> dict[str, Any]:
    return {
        "regions": len(recoding),
        "quasi_identifiers": [domain.name for domain in recoding.domains],
        "method": recoding.policy.method.name,
        "chosen": recoding.method,
        "k": recoding.policy.k,
    }


@with_flags("k", "l", "require", "max_suppressed", *READ_WITH)
def apply(
    rules: Annotated[Path, typer.Argument(metavar="RULES", help="Rules that sfumato fit has learnt.", readable=False)],
    table: Annotated[
        str, typer.Argument(metavar="INPUT", help="Further records: a file, directory or table in a database.")
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUTPUT", help=OUTPUT_HELP),
    ],
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Release further records under learnt rules, audited under the rules' policy; flags go over it.

    Records with values outside the learnt domain are left out, and those of regions that do not meet the policy in this
    table. Exit code 1, and nothing is written, when they are more than the policy's max_suppressed_fraction.

    Example: sfumato apply rules.json march.csv -o release.csv --max-suppressed 0.05
    """
    with progress_for_people() as progress:
        from sfumato.api import apply_to_file

        release = apply_to_file(rules, table, output, progress, **flags)
        summary = release.summary()
    if json:
        print_json(summary)
        return
    console = People()
    place = location_of(output)
    show_release(console, summary, release_files(place), f"sfumato audit {shlex.quote(place.shown)}")
    if summary["suppressed"]:
        console.print(
            f"left out {summary['outside']:,} with a value outside the domain, {summary['failing']:,} in regions that "
            "do not meet the policy here"
        )
