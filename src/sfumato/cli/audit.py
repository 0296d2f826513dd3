"""``sfumato audit``: check a finished release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from sfumato.cli.exit_codes import exit_code_of
from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import AcceptUnchecked, Json, PolicyFile, ReleasedTable, Temporary
from sfumato.cli.output import TextConsole, print_json, version_and_seconds
from sfumato.cli.policy_flags import with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import TRIAL, show_audit, show_counts


@with_flags(
    "quasi_identifiers",
    "sensitive",
    "identifiers",
    "drop",
    "pseudonyms",
    "pseudonym_key",
    "accept_linkable",
    "k",
    "l",
    "require",
    "form",
    "separator",
    "encoding",
    "sheet",
    "header_row",
    "layout",
    "labels",
    "max_expansion",
    "memory",
)
def audit(
    release: ReleasedTable,
    original: Annotated[
        str | None,
        typer.Option("--original", metavar="TABLE", help="Also compare the kept columns with those of this table."),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    temporary: Temporary = None,
    accept_unchecked: AcceptUnchecked = False,
    json: Json = False,
) -> int:
    """Check a finished release against a policy. The exit code is 1 if it does not hold.

    It is 5 if nothing fails but something could not be checked: a release does not say whose its records are, so what
    a policy requires in persons may stay open. Without a policy, the certificate beside the release says what to check.

    Example: sfumato audit release.csv --quasi-identifiers age,zip -k 10
    """
    with terminal_progress() as progress:
        from sfumato.api import audit as audit_release
        from sfumato.requirements import all_hold

        report = audit_release(
            release, load_policy(policy), original=original, temporary=temporary, progress=progress, **flags
        )
    holds = all_hold(verdict.holds for verdict in report.verdicts)
    if json:
        print_json(
            {
                "records": report.records,
                "classes": report.classes,
                "smallest_class": report.smallest_class,
                "holds": holds,
                "trial": report.trial,
                "audit": report.as_dict(),
                "remarks": list(report.remarks),
                **version_and_seconds(progress),
            }
        )
    else:
        console = TextConsole()
        show_counts(
            console,
            {"released": report.records, "classes": report.classes, "smallest_class": report.smallest_class},
        )
        show_audit(console, report.as_dict())
        for remark in report.remarks:
            console.print(f"remark  {remark}")
        unchecked = f"{len(report.unchecked)} of {len(report.verdicts)} requirements were not checked"
        what = "trial" if report.trial else "release"
        if report.trial:
            console.print(TRIAL)
        conclusions = {
            True: f"the {what} holds"
            if not report.pseudonyms
            else "all that the policy requires holds, and it accepts that the records of a person are linked",
            False: f"the {what} does not hold: do not share it",
            None: f"nothing fails, but {unchecked}: the {what} may not hold",
        }
        console.print(conclusions[holds])
    return exit_code_of(holds, accept_unchecked=accept_unchecked)
