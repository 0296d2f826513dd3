"""What people read at the end of a command. Every function prints one part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from sfumato.cli.output import TextConsole, plain_table, standard_output

if TYPE_CHECKING:
    from sfumato.evaluation.queries import QueryAccuracy

WORST = 10
MARKS = {True: ("holds", "green"), False: ("FAILS", "bold red"), None: ("NOT CHECKED", "bold yellow")}
FEASIBLE = {True: ("feasible", "green"), False: ("NOT FEASIBLE", "bold red"), None: ("depends", "bold yellow")}
TRIAL = "a trial: not to be published"
LOSSES = {
    "c_dm": "discernibility C_DM",
    "c_avg": "average class size divided by k C_AVG",
    "c_mdm": "excess over k C_MDM",
    "max_size": "largest perimeter MAXSIZE",
    "cm": "classification metric CM",
    "il": "information loss of means IL, 100 SSE / SST",
}


def show_release(console: TextConsole, summary: Mapping[str, Any], files: Sequence[str | Path], next_step: str) -> None:
    """Print what was released, what holds, what it cost, and where it was written."""
    show_counts(console, summary)
    show_audit(console, summary["audit"])
    if "trial" in summary:
        mark = Text("trial  ", style="bold yellow")
        console.print(mark.append(" not to be published, and not in the run record", style="default not bold"))
    show_loss(console, summary["gcp"], summary["columns"])
    show_left_out(console, summary)
    _show_lower_costs(console, summary)
    if "bound" in summary:
        show_bound(console, summary["cost"], summary["bound"])
    show_tasks(console, summary.get("workload", ()))
    for text in summary["warnings"]:
        console.warning(text)
    seconds = sum(summary["seconds"].values())
    choice = summary.get("choice", {})
    effort = f", effort {choice['effort']}" if "effort" in choice else ""
    console.print(f"\nmethod {summary['chosen']}{effort}, engine {summary['engine']}, {seconds:.1f} seconds")
    if not choice.get("exact", True):
        tried_on = f"{choice['tried_on']:,} of the records"
        console.print(f"        chosen on {tried_on}: on those, and only on those, hilbert is known not to lose less")
    if "lattice" in summary:
        _show_levels(console, summary["levels"], summary["lattice"])
    show_files(console, files)
    for text in summary.get("replaced", ()):
        console.print(f"{'':7} instead of {text}")
    if "trial" in summary:
        console.print("        only the certificate tells that it is a trial: keep both together, or move neither")
        next_step = "run the same command without --trial to make the release"
    console.print(f"next    {next_step}")


def _show_levels(console: TextConsole, levels: Mapping[str, int], lattice: Mapping[str, Any]) -> None:
    """Print the level of each column, and what is known about all other levels."""
    console.print("levels  " + ", ".join(f"{name} {level}" for name, level in levels.items()))
    if lattice["complete"]:
        console.print(f"        none of the {lattice['nodes']:,} combinations of levels loses less")
    elif "least_possible" in lattice:
        console.print(
            f"        the search ended after {lattice['tested']:,} of {lattice['nodes']:,} combinations of levels; "
            f"none loses less than {lattice['least_possible']:.2%}"
        )
    if hidden := lattice["without_levels"]:
        names, verb = ", ".join(map(repr, hidden)), "has" if len(hidden) == 1 else "have"
        console.print(
            f"        {names} {verb} no level between the values and *: intervals or a calendar would show more"
        )


def show_counts(console: TextConsole, summary: Mapping[str, Any]) -> None:
    suppressed = summary.get("suppressed", 0)
    left_out = f" ({suppressed:,} left out)" if suppressed else ""
    console.heading(
        f"{summary['released']:,} records{left_out} in {summary['classes']:,} classes, "
        f"the smallest of {summary['smallest_class']:,}"
    )


def show_audit(console: TextConsole, verdicts: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for every verdict, and why some could not be checked."""
    width = max(7, *(len(MARKS[verdict["holds"]][0]) for verdict in verdicts))  # 7 is that of all other lines
    for verdict in verdicts:
        mark, style = MARKS[verdict["holds"]]
        line = Text(f"{mark:{width}}", style=style)
        line.append(f" {verdict['requirement']}", style="default not bold")
        if "=" in verdict["requirement"]:  # it has a bound to compare the value with
            what = f"in {verdict['counted']}" if "counted" in verdict else "reached"
            line.append(f" ({what}: {_amount(verdict['value'])})", style="dim")
        console.print(line)
    for reason in dict.fromkeys(verdict["reason"] for verdict in verdicts if verdict["holds"] is None):
        if reason:
            console.print(f"why     not checked: {reason}")


def _amount(value: float | None) -> str:
    """Write the value that a class reaches; None means that it has no bound."""
    if value is None:
        return "no bound"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def show_loss(console: TextConsole, gcp: float, columns: Mapping[str, float]) -> None:
    console.print(
        f"\ninformation loss (GCP) {gcp:.1%}: on average a released value covers this share of its column's range or "
        "taxonomy; 0% is the original, 100% says nothing. It is measured against the original, so do not publish it"
    )
    table = Table.grid(padding=(0, 2))
    for name, loss in columns.items():
        table.add_row(Text(f"  {name}"), console.bar(loss), Text(f"{loss:.1%}", justify="right"))
    console.print(table)


def show_left_out(console: TextConsole, summary: Mapping[str, Any]) -> None:
    """Print what the released records lose, and the cost in which those left out count as the policy says."""
    if not summary["suppressed"] or not summary["released"]:
        return
    text = f"the released records lose {summary['gcp_released']:.1%}"
    if summary["suppression_cost"] != 1:
        text += (
            f". With a record that was left out counted as {summary['suppression_cost']:g} instead of 1, the loss is "
            f"{summary['cost']:.1%}"
        )
    console.print(text)


def _show_lower_costs(console: TextConsole, summary: Mapping[str, Any]) -> None:
    """Print what a lower cost of left-out records would leave out and gain, once for each number of records."""
    shown = summary["suppressed"]
    for other in summary.get("other_costs", ()):
        count, gain = other["suppressed"], other["gain"]
        if count > shown and gain > 0:
            console.print(
                f"at a suppression cost of {other['suppression_cost']:g}, about {count:,} records "
                f"({count / summary['records']:.2%}) would be left out, and the others would lose {gain:.1%} less than "
                "with all records: an estimate from what this search tried"
            )
            shown = count


def show_bound(console: TextConsole, cost: float, bound: float) -> None:
    """Compare the loss with the least possible one."""
    from sfumato.report.sentences import beside_the_least

    comparison = f": this is {beside_the_least(cost, bound)}" if bound else ", which says nothing about the least loss"
    console.print(f"no release of this table loses less than {bound:.2%}{comparison}")


def show_losses(console: TextConsole, values: Mapping[str, float | int]) -> None:
    """Print every loss except those that ``show_loss`` and ``show_left_out`` print."""
    for name, value in values.items():
        if name not in ("gcp", "gcp_released", "cost"):
            number = f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"
            console.print(f"{LOSSES.get(name, name)}: {number}")


def show_tasks(console: TextConsole, tasks: Iterable[Mapping[str, Any]]) -> None:
    """Print how well the release serves its intended use."""
    for number, task in enumerate(tasks):
        if number == 0:
            console.print("\nintended use of the release")
        kind = f"{task['task']}{' (inferred from its values)' if task.get('inferred') else ''}"
        match task["task"]:
            case "classification":
                line = (
                    f"{kind} of {task['target']!r}: conditional entropy {task['entropy']:.4f} of "
                    f"{task['entropy_of_table']:.4f} bits, classification metric CM {task['cm']:.4f}"
                )
            case "regression":
                line = (
                    f"{kind} of {task['target']!r}: WMSE {task['wmse']:,.4g} of a variance of "
                    f"{task['variance_of_table']:,.4g}"
                )
            case _:
                line = (
                    f"{kind} {task['where']}: returns {task['returned']:,} records for {task['selected']:,}, "
                    f"imprecision {task['imprecision']:,}"
                )
        console.print(Text(f"  {line}"))


def show_queries(console: TextConsole, queries: Iterable[QueryAccuracy]) -> None:
    """Print how well queries are answered, with the group-bys that are answered worst."""
    for accuracy in queries:
        console.print(f"\nqueries that count {accuracy.sensitive!r}")
        if accuracy.kl is not None:
            console.print(
                f"  datacube level {accuracy.level}: KL divergence {accuracy.kl:.4f}, the mean of "
                f"{len(accuracy.group_bys):,} group-bys; 0 is the original"
            )
            table = Table.grid(padding=(0, 2))
            worst = sorted(accuracy.group_bys, key=lambda group_by: -group_by.kl)[:WORST]
            for group_by in worst:
                table.add_row(Text(f"    {', '.join(group_by.columns)}"), Text(f"{group_by.kl:.4f}", justify="right"))
            console.print(table)
            if len(worst) < len(accuracy.group_bys):
                console.print(f"    these are the worst {WORST}; --json has all")
        ranges = accuracy.ranges
        if ranges is not None:
            console.print(
                f"  {ranges.count:,} range queries on {ranges.attributes} quasi-identifiers, selectivity "
                f"{ranges.selectivity:g}, seed {ranges.seed}: mean relative error {ranges.mean:.1%}, median "
                f"{ranges.median:.1%}"
            )


def show_files(console: TextConsole, files: Sequence[str | Path]) -> None:
    standard_output.files += map(str, files)
    for number, file in enumerate(files):
        console.print(f"{'wrote' if number == 0 else '':7} {file}")


def show_plan(console: TextConsole, plan: Mapping[str, Any]) -> None:
    """Print what a dry run found."""
    console.heading(f"{plan['records']:,} records; nothing was written")
    table = plain_table("column", "role", "type")
    for heading in ("distinct", "nulls", "taxonomy levels"):
        table.add_column(heading, justify="right")
    with_forms = any(column["form"] not in (None, "labels") for column in plan["columns"])
    if with_forms:
        table.add_column("form")
    for column in plan["columns"]:
        kind = column["type"] or "not read"
        table.add_row(
            Text(column["name"]),
            Text(column["role"] if column["released"] else f"{column['role']}, not released"),
            Text(f"{kind} (inferred)" if column["inferred"] else kind),
            *(Text("" if column[key] is None else f"{column[key]:,}") for key in ("distinct", "nulls", "levels")),
            *([Text(column["form"] or "")] if with_forms else []),
        )
    console.print(table)
    chosen_by = "" if plan["method"] == plan["chosen"] else f" (chosen by {plan['method']})"
    console.print(f"method {plan['chosen']}{chosen_by}, engine {plan['engine']}, seed {plan['seed']}")
    _show_shown_levels(console, plan["columns"])
    _show_feasibility(console, plan["feasibility"])
    _show_suggestions(console, plan["suggestions"])
    for text in plan["warnings"]:
        console.warning(text)
    if plan["feasible"]:
        console.print("next    run the same command without --dry-run")


def _show_shown_levels(console: TextConsole, columns: Sequence[Mapping[str, Any]]) -> None:
    """Print what a class may show of every quasi-identifier, from fine to coarse."""
    console.print("\na class may show")
    table = Table.grid(padding=(0, 2))
    for column in columns:
        if column["shown"] is None:
            continue
        names = [
            level["name"] if level["name"] == "*" else f"{level['name']} ({level['groups']:,})"
            for level in column["shown"]
        ]
        table.add_row(Text(f"  {column['name']}"), Text(", ".join(names)))
    console.print(table)


def _show_feasibility(console: TextConsole, lines: Sequence[Mapping[str, Any]]) -> None:
    """Print whether each requirement can be met, and why not."""
    console.print("\nwhat is required")
    for line in lines:
        mark, style = FEASIBLE[line["feasible"]]
        what = "the whole table" if line["parts"] == 1 else f"the worst of {line['parts']:,} parts of the table"
        text = Text(f"{mark:12}", style=style)
        text.append(f" {line['requirement']}", style="default not bold")
        text.append(f" ({what} reaches {_amount(line['value'])})", style="dim")
        console.print(text)
        if "reason" in line:
            console.print(f"{'':12} {line['reason']}")


def _show_suggestions(console: TextConsole, suggestions: Sequence[Mapping[str, Any]]) -> None:
    """Print the cheapest changes with which the policy can be met."""
    if suggestions:
        console.print("\nany of these would be enough, the least change first")
    for suggestion in suggestions:
        console.print(f"  {suggestion['words']} (gives up {suggestion['cost']:.1%} of what is asked for)")


def show_choice(console: TextConsole, choice: Mapping[str, Any]) -> None:
    """Print the engine of a run, the reason for it, and its cost."""
    records = "unknown" if choice["records"] is None else f"about {choice['records']:,}"
    console.print(f"engine {choice['engine']}: {choice['reason']}")
    console.print(f"records {records}, input {_size(choice['input_bytes'])}")
    console.print(
        f"memory allowed {_size(choice['memory'])}, needed by the memory engine {_size(choice['memory_needed'])}"
    )
    for number, text in enumerate(choice["passes"], start=1):
        console.print(f"  {number}. {text}")
    console.print(
        f"temporary files: about {_size(choice['scratch_bytes_written'])} written, "
        f"{_size(choice['scratch_bytes_read'])} read\n"
    )


def show_counters(console: TextConsole, summary: Mapping[str, Any]) -> None:
    """Print what a run read from and wrote to temporary files."""
    scratch, divided = summary.get("scratch", {"bytes_read": 0, "bytes_written": 0}), summary.get("divided")
    if divided is not None:
        console.print(
            f"divided by {divided['by']}: codes read {divided['scans']:,} times, in whole or in part "
            f"({_size(divided['read'])}), written into parts {divided['repartitions']:,} times "
            f"({_size(divided['written'])}); {divided['finished']:,} parts finished in memory"
        )
    console.print(f"temporary files: {_size(scratch['bytes_written'])} written, {_size(scratch['bytes_read'])} read")


def _size(count: int | None) -> str:
    """Write a number of bytes in a unit that people read."""
    if count is None:
        return "unknown"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
