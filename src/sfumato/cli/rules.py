"""``sfumato fit`` learns a recoding and writes its rules; ``sfumato apply`` releases new records under them."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import OUTPUT_HELP, Force, InputTable, Json, PolicyFile, Temporary, Trial
from sfumato.cli.output import TextConsole, print_json, say_replaced, saying_replaced, version_and_seconds
from sfumato.cli.policy_flags import EVERY_FLAG, READ_WITH, WRITE_WITH, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_files, show_release
from sfumato.errors import UsageError
from sfumato.tables.locations import codebook_path, location_of, release_files

if TYPE_CHECKING:
    from sfumato.releases.recoding import Recoding

# Released values under rules are always regions.
FLAGS = tuple(name for name in EVERY_FLAG if name != "boxes")
TABLE = "your_table"


@with_flags(*FLAGS)
def fit(
    table: InputTable,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="RULES.json", help="Where to write the rules. Do not share them.", readable=False
        ),
    ],
    sql: Annotated[
        Path | None,
        typer.Option("--sql", metavar="FILE.sql", help="Also write the rules as a database query.", readable=False),
    ] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", metavar="duckdb|postgresql", help="The SQL dialect of the query.")
    ] = "duckdb",
    sql_table: Annotated[str, typer.Option("--table", metavar="NAME", help="The table that the query reads.")] = TABLE,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    temporary: Temporary = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Learn regions of the quasi-identifiers from one table. `sfumato apply` recodes new records with them.

    Writes no release of INPUT. The method must have regions; the default is mondrian. It also learns from tables
    larger than memory, and learns the same rules.

    Example: sfumato fit patients.csv -o rules.json --quasi-identifiers age,zip --sensitive diagnosis -k 25
    """
    with terminal_progress() as progress:
        from sfumato.pipeline.learn import fit_recoding
        from sfumato.policy import merge_flags
        from sfumato.releases.rules import QUERY, check_rules_target, write_rules
        from sfumato.releases.rules_sql import check_columns_are_stored, check_dialect

        full_policy = merge_flags(load_policy(policy), **flags)
        full_policy.check_complete()
        if temporary is not None:
            tempfile.tempdir = str(temporary)
        check_dialect(dialect)
        targets = [output, *([] if sql is None else [sql])]
        if len({target.absolute() for target in targets}) < len(targets):
            raise UsageError("the rules and the query have the same name. Give each a file of its own.")
        check_rules_target(table, output, force=force)
        if sql is not None:
            check_columns_are_stored(full_policy)
            check_rules_target(table, sql, "query", QUERY, force=force)
        recoding = fit_recoding(table, full_policy, progress)
        with progress.phase("write"), saying_replaced(*targets):
            write_rules(recoding, output, {} if sql is None else {sql: recoding.to_sql(dialect, sql_table)})
    if json:
        run = {"engine": progress.decisions["engine"]["engine"], "files": list(map(str, targets))}
        print_json({**_summary(recoding), **run, **version_and_seconds(progress)}, targets)
        return
    console = TextConsole()
    names = ", ".join(domain.name for domain in recoding.domains)
    if recoding.levels:
        names = ", ".join(f"{name} on level {level}" for name, level in recoding.levels.items())
        console.heading(f"{names}, learnt by {recoding.method}")
    else:
        console.heading(f"{len(recoding):,} regions over {names}, learnt by {recoding.method}")
    console.print(
        "the rules contain bounds of regions and names of categories, which are values of the table: do not share them"
    )
    show_files(console, targets)
    console.print(f"next    sfumato apply {shlex.quote(str(output))} NEW -o RELEASE")


def _summary(recoding: Recoding) -> dict[str, Any]:
    return {
        **({"levels": dict(recoding.levels)} if recoding.levels else {"regions": len(recoding)}),
        "quasi_identifiers": [domain.name for domain in recoding.domains],
        "method": recoding.policy.method.name,
        "chosen": recoding.method,
        "k": recoding.policy.k,
    }


@with_flags("k", "l", "require", "pseudonym_key", "max_suppressed", *WRITE_WITH, *READ_WITH)
def apply(
    rules: Annotated[Path, typer.Argument(metavar="RULES", help="Rules that sfumato fit has written.", readable=False)],
    table: Annotated[
        str, typer.Argument(metavar="INPUT", help="New records: a file, a directory or a database table.")
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUTPUT", help=OUTPUT_HELP),
    ],
    *,
    flags: Mapping[str, Any],
    trial: Trial = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Release new records under learnt rules and audit the release under the rules' policy; flags override it.

    Leaves out records with values outside the learnt domain, and records in regions that do not meet the policy in this
    table. If these are more than the policy's max_suppressed_fraction, writes nothing and exits with 1.

    Example: sfumato apply rules.json march.csv -o release.csv --max-suppressed 0.05
    """
    with terminal_progress() as progress:
        from sfumato.api import apply_to_file

        release = apply_to_file(rules, table, output, progress, force=force, trial=trial, **flags)
        summary = release.summary()
    say_replaced(release.replaced)
    location = location_of(output)
    pages = [codebook_path(output)] if release.policy.release.codebook else []
    files = release_files(location, pages=pages)
    if json:
        print_json(summary, files)
        return
    console = TextConsole()
    show_release(console, summary, files, f"sfumato audit {shlex.quote(location.shown)}")
    if summary["suppressed"]:
        console.print(
            f"left out {summary['outside']:,} with a value outside the domain, {summary['failing']:,} in regions that "
            "do not meet the policy here"
        )
