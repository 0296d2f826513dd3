"""How do the anonymizers on PyPI compare: seconds, loss, and whether k holds?

Every tool gets the frame in memory. Importing, starting, reading and writing are not timed. Sfumato's time includes its
audit and its losses. A peer runs in its own environment.
"""

from __future__ import annotations

import csv
import json
import subprocess
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa

import sfumato
from benchmarks.peer import SUPPRESSION_PERCENT
from benchmarks.peer_loss import (
    Penalty,
    ancestor_penalty,
    band_penalty,
    global_certainty_penalty,
    node_penalty,
    range_penalty,
    set_penalty,
)
from benchmarks.section import Row, Rows, Section, Table
from benchmarks.tables import QUICK, Options, SmallTable
from benchmarks.timing import ROUNDS
from sfumato.evaluation.audit.audit import AuditReport
from sfumato.methods import AUTO

OURS = (AUTO, "hilbert-fast", "mondrian", "topdown")
MONDRIAN = "Mondrian"
PEERS = {"anonypy": MONDRIAN, "anonypyx": MONDRIAN, "anjana": "full-domain"}
"""What each peer does, by its name in peer.py."""

OF_SETS = frozenset(PEERS) - {"anjana"}
"""The peers that release sets of categories and ranges of numbers."""

MEMORY_BYTES = 8 * 10**9
LIMIT = 300.0
"""The seconds that a peer may take."""

K = 10
BANDS = (5, 10, 20)
"""The widths of bands of a numeric column without a hierarchy, for the peer that needs one."""


@dataclass(frozen=True)
class Original:
    """The table that every tool gets."""

    frame: pandas.DataFrame
    csv: Path
    quasi_identifiers: list[str]
    sensitive: str
    numeric: tuple[str, ...]
    hierarchies: dict[str, list[list[str]]]
    table: SmallTable

    @property
    def columns(self) -> list[str]:
        return [*self.quasi_identifiers, self.sensitive]


def run(options: Options) -> Mapping[str, Table]:
    if options.peers is None:
        raise SystemExit("error: --peers names the Python of the environment that has the peers (`make bench`).")
    original = _original(options)
    ours = [_ours(original, method) for method in OURS]
    rows = [*ours, *(_peer(options, options.peers, original, peer) for peer in PEERS)]
    about = f"{original.table.name}, k = {K}"
    losses = ("by", "GCP", "GCP as sets", "smallest class", "k holds", "released", "suppressed")
    return {
        "seconds": Table(
            f"Peers on {about}: seconds",
            [{"by": row["by"], "seconds": row["seconds"], **_ratios(row, ours)} for row in rows],
            [
                f"Best of {ROUNDS}, of slow runs the only one; at most {LIMIT:,.0f} seconds and "
                f"{MEMORY_BYTES // 10**9} GB a peer. The call alone is timed; of sfumato with its audit and losses."
            ],
            worst=f"times {OURS[0]}",
            worst_is_smallest=True,
        ),
        "losses": Table(
            f"Peers on {about}: losses",
            [{name: row[name] for name in losses} for row in rows],
            [
                "GCP counts the smallest group of the taxonomy that holds a class; as sets it counts the categories "
                "that occur in a class. anonypy and anonypyx release such sets, sfumato and anjana groups; for sfumato "
                "the second figure is what its classes would cost if they were released so. "
                f"anjana may leave out {SUPPRESSION_PERCENT}% of the records, which count as lost."
            ],
        ),
    }


def _ratios(row: Row, ours: Rows) -> Row:
    """Return how many times the seconds of Sfumato's default method, and of its Mondrian, a tool takes."""
    by = {f"times {method}": one["seconds"] for method, one in zip(OURS, ours, strict=True)}
    names = (f"times {OURS[0]}", "times mondrian")
    return {name: None if row["seconds"] is None else row["seconds"] / by[name] for name in names}


def _original(options: Options) -> Original:
    table = options.real("adult")
    names = table.quasi_identifiers
    if not table.policy.sensitive:
        raise SystemExit("error: peers need a sensitive column. Give one the role 'sensitive' in schema.json.")
    sensitive = table.policy.sensitive[0]
    text = {name: str for name in (*names, sensitive) if name not in table.numeric}
    frame = pandas.read_csv(table.path, dtype=text, keep_default_na=False)[[*names, sensitive]]
    for name in set(names) - set(table.numeric):
        if any("," in leaf for leaf in frame[name].unique()):
            raise SystemExit(f"error: values of {name!r} hold commas, which a peer puts between values. Replace them.")
    file = options.work / "peers-original.csv"
    frame.to_csv(file, index=False)
    bands = {name: _bands(frame[name]) for name in table.numeric if name not in table.hierarchies}
    return Original(frame, file, names, sensitive, table.numeric, {**table.hierarchies, **bands}, table)


def _bands(column: pandas.Series[int]) -> list[list[str]]:
    """Return a hierarchy of ever wider bands over whole numbers."""
    return [
        [str(number), *(f"[{(start := number // width * width)}-{start + width - 1}]" for width in BANDS), "*"]
        for number in range(int(column.min()), int(column.max()) + 1)
    ]


def _ours(original: Original, method: str) -> dict[str, Any]:
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        for _ in range(ROUNDS + 1):  # the first may have to compile
            started = time.perf_counter()
            release = sfumato.anonymize(original.frame, original.table.policy, k=K, method=method, effort=QUICK)
            released = release.data
            seconds.append(time.perf_counter() - started)
        in_order = sfumato.anonymize(
            original.frame, original.table.policy, k=K, method=method, effort=QUICK, keep_order=True
        )
    report = sfumato.audit(released, original.table.policy, k=K)
    losses = (float(release.losses.gcp), _loss_as_sets(original, in_order.data))
    return _row(f"sfumato {method}", min(seconds[1:]), losses, report, len(original.frame))


def _loss_as_sets(original: Original, released: pandas.DataFrame) -> float:
    """Return what Sfumato's classes would cost if they showed sets of categories instead of taxonomy groups."""
    names = original.quasi_identifiers
    groups = original.frame[names].groupby([released[name] for name in names], sort=False, dropna=False)
    columns = {}
    for name in names:
        shown = groups[name].agg(_shown_range if name in original.numeric else _shown_set)
        sizes = groups[name].size()
        columns[name] = shown.repeat(sizes).tolist()
    return global_certainty_penalty(columns, _penalties(original, of_sets=True), len(original.frame))


def _shown_range(values: pandas.Series[int]) -> str:
    return f"{values.min()}-{values.max()}"


def _shown_set(values: pandas.Series[str]) -> str:
    return ",".join(sorted(set(values)))


def _peer(options: Options, python: Path, original: Original, peer: str) -> dict[str, Any]:
    does = PEERS[peer]
    output = options.work / f"{peer}.csv"
    output.unlink(missing_ok=True)
    task = options.work / f"{peer}.json"
    contents = {
        "data": str(original.csv.resolve()),
        "columns": original.columns,
        "quasi_identifiers": original.quasi_identifiers,
        "numeric": original.numeric,
        "sensitive": original.sensitive,
        "hierarchies": original.hierarchies,
        "k": K,
        "output": str(output.resolve()),
        "memory": MEMORY_BYTES,
    }
    task.write_text(json.dumps(contents), "utf-8")
    # Isolated, so that modules of this directory do not hide those of the peers.
    command = [str(python), "-I", str(Path(__file__).with_name("peer.py")), peer, str(task)]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return _failed(f"{peer}, {does}", f"not finished after {LIMIT:,.0f} s")
    if finished.returncode != 0:
        # The kind of error alone: its text may hold values of the table.
        last = (finished.stderr.strip().splitlines() or ["no message"])[-1].partition(":")[0]
        if last.endswith("MemoryError"):
            return _failed(f"{peer}, {does}", f"needs more than {MEMORY_BYTES // 10**9} GB")
        return _failed(f"{peer}, {does}", f"failed: {last}")
    answer = json.loads(finished.stdout)
    name = f"{peer} {answer['version']}, {does}"
    if not answer["released"]:
        return _failed(name, "found nothing to release")
    sets = peer in OF_SETS
    columns = _read_release(output, original, of_sets=sets)
    report = sfumato.audit(pa.table(columns), quasi_identifiers=original.quasi_identifiers, other="drop", k=K)
    losses = (
        global_certainty_penalty(columns, _penalties(original, of_sets=sets, as_sets=False), len(original.frame)),
        global_certainty_penalty(columns, _penalties(original, of_sets=sets), len(original.frame)),
    )
    return _row(name, min(answer["seconds"]), losses, report, len(original.frame))


def _read_release(path: Path, original: Original, *, of_sets: bool) -> dict[str, list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    columns = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    if of_sets:
        # They have no order of their own; equal sets are one value.
        for name in set(original.quasi_identifiers) - set(original.numeric):
            same = {label: ",".join(sorted(label.split(","))) for label in set(columns[name])}
            columns[name] = [same[label] for label in columns[name]]
    return columns


def _penalties(original: Original, *, of_sets: bool, as_sets: bool = True) -> Mapping[str, Penalty]:
    """Return the functions that cost released values: sets as sets or as the groups that contain them, or groups."""
    penalties: dict[str, Penalty] = {}
    for name in original.quasi_identifiers:
        rows = original.hierarchies[name]
        if name in original.numeric:
            lowest, highest = float(original.frame[name].min()), float(original.frame[name].max())
            penalties[name] = range_penalty(lowest, highest) if of_sets else band_penalty(rows, lowest, highest)
        else:
            in_sets = set_penalty(len(rows)) if as_sets else ancestor_penalty(rows)
            penalties[name] = in_sets if of_sets else node_penalty(rows)
    return penalties


def _row(by: str, seconds: float, losses: tuple[float, float], report: AuditReport, records: int) -> dict[str, Any]:
    return {
        "by": by,
        "seconds": seconds,
        "GCP": losses[0],
        "GCP as sets": losses[1],
        "smallest class": report.smallest_class,
        "k holds": "yes" if report.holds else "no",
        "released": report.records,
        "suppressed": records - report.records,
    }


def _failed(by: str, reason: str) -> dict[str, Any]:
    names = ("seconds", "GCP", "GCP as sets", "smallest class", "released", "suppressed")
    return {"by": by, "k holds": reason, **dict.fromkeys(names)}


SECTION = Section(run, timed=True, parameters={"k": K, "seconds of a peer": LIMIT, "rounds": ROUNDS}, tables=("adult",))
