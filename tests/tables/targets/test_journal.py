"""The journal of a publication: who ends it, who must wait, and what is refused."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from database_tables import in_sqlite
from kills import killed_after_commit
from pyarrow import csv

import sfumato
from sfumato.cli import main
from sfumato.errors import InputError, OutputError, SfumatoError
from sfumato.pipeline.release import Release
from sfumato.pipeline.run import draft_release, published
from sfumato.policy import InputOptions, merge_flags
from sfumato.progress import Progress
from sfumato.report.release import ReleaseReport
from sfumato.tables.locations import DirectoryLocation, location_of
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets import file_publication
from sfumato.tables.targets.journal import JOURNAL, MARK, journal_path
from sfumato.tables.targets.staging import Stage, recover
from sfumato.tables.targets.target import ReleasePage, open_target

NOBODY = 65534
PEOPLE = pa.table({"age": list(range(12)), "sex": ["f", "m"] * 6, "ill": ["a", "b", "c"] * 4})
FLAGS = ["--quasi-identifiers", "age,sex", "--sensitive", "ill", "-k", "4"]

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that others may enter: those of pytest only their owner may."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def two_files(folder: Path, text: str) -> None:
    with Stage() as stage:
        for name in ("a.csv", "b.html"):
            stage.path(folder / name).write_text(f"{name} {text}\n1\n")
        stage.publish()


def unfinished(folder: Path) -> Path:
    """Leave two old files, and a journal that says that new ones have taken their place."""
    two_files(folder, "old")
    killed_after_commit(lambda: two_files(folder, "new"))
    assert (folder / "a.csv").read_text() == "a.csv old\n1\n"
    return journal_path(folder / "a.csv")


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights, which know no permissions."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


# Whoever comes next ends it


def written(folder: Path, k: int) -> None:
    """Publish a release and its page, as ``anonymize --report`` does."""
    policy = merge_flags(quasi_identifiers=["age", "sex"], sensitive="ill", k=k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "pages", lambda *_: [ReleasePage(folder / "page.html", f"page of {k}")])
        published(draft_release(PEOPLE, policy, Progress()), folder / "out.csv")


COMMANDS: dict[str, list[str]] = {
    "audit": ["audit", "out.csv"],
    "measure": ["measure", "people.csv", "out.csv"],
    "risk": ["risk", "out.csv"],
    "plot": ["plot", "out.csv", "-o", "plot.svg"],
    "report": ["report", "people.csv", "out.csv", "-o", "page.html", "--force"],
    "policy": ["policy", "out.csv"],
    "as an input": [
        "anonymize",
        "out.csv",
        "-o",
        "new.csv",
        "--quasi-identifiers",
        "ill",
        "--other",
        "drop",
        "-k",
        "2",
    ],
    "as an output": ["anonymize", "people.csv", "-o", "out.csv", *FLAGS],
    "rehearsed": ["anonymize", "people.csv", "-o", "out.csv", *FLAGS, "--dry-run"],
}


@pytest.mark.not_quick
@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_command_on_the_release_ends_what_a_killed_run_began(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv.write_csv(PEOPLE, tmp_path / "people.csv")
    written(tmp_path, 2)
    killed_after_commit(lambda: written(tmp_path, 4))
    assert (tmp_path / "page.html").read_text() == "page of 2"
    monkeypatch.chdir(tmp_path)
    assert main(COMMANDS[command]) == 0
    certificate = json.loads((tmp_path / "out.csv.sfumato.json").read_text())
    assert certificate["policy"]["privacy"]["k"] == 4
    assert sfumato.audit("out.csv").holds
    if command != "report":
        assert (tmp_path / "page.html").read_text() == "page of 4"
    assert not [name for name in names(tmp_path) if "sfumato-" in name]


def test_a_command_on_any_file_of_the_release_ends_it(tmp_path: Path) -> None:
    unfinished(tmp_path)
    recover(tmp_path / "b.html")
    assert (tmp_path / "a.csv").read_text() == "a.csv new\n1\n"
    assert names(tmp_path) == ["a.csv", "b.html"]


def test_files_of_other_names_are_left_alone(tmp_path: Path) -> None:
    found = unfinished(tmp_path)
    recover(tmp_path / "c.csv")
    assert found.exists()
    assert (tmp_path / "a.csv").read_text() == "a.csv old\n1\n"


def test_a_directory_between_two_renames_is_known_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_publication, "exchange_atomically", lambda *_: False)

    def release(value: int) -> None:
        with open_target(location_of(f"{tmp_path}/out/")) as target:
            target.write(pa.schema({"a": pa.int64()}), lambda: iter([pa.record_batch({"a": [value]})]))
            target.publish(f'{{"value": {value}}}')

    release(1)
    killed_after_commit(lambda: release(2))
    os.rename(tmp_path / "out", tmp_path / f".{token_of(tmp_path / 'out')}.sfumato-replaced-out")
    assert location_of(tmp_path / "out") == DirectoryLocation(tmp_path / "out")
    source = open_source(tmp_path / "out", InputOptions())
    assert [batch.to_pydict() for batch in source.batches(["a"])] == [{"a": [2]}]
    assert names(tmp_path) == ["out"]


def token_of(target: Path) -> str:
    return str(json.loads(journal_path(target).read_text())["token"])


def test_permissions_are_given_when_a_file_has_its_name_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int]] = []
    change = os.fchmod

    def noted(handle: int, mode: int) -> None:
        given.append((Path(os.readlink(f"/proc/self/fd/{handle}")).name, mode))
        change(handle, mode)

    monkeypatch.setattr(os, "fchmod", noted)
    two_files(tmp_path, "new")
    assert given[1:] == [("a.csv", 0o644), ("b.html", 0o644)]
    assert given[0][0].endswith("-draft")


def test_permissions_are_given_again_if_the_run_was_killed_before(tmp_path: Path) -> None:
    found = unfinished(tmp_path)
    token = token_of(tmp_path / "a.csv")
    for name in ("a.csv", "b.html"):
        (tmp_path / f".{token}{MARK}{name}").rename(tmp_path / name)
    (tmp_path / "own").write_text("somebody's own")
    (tmp_path / "own").chmod(0o600)
    (tmp_path / "own").rename(tmp_path / "b.html")
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o600
    recover(tmp_path / "a.csv")
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "b.html").stat().st_mode) == 0o600
    assert not found.exists()


# Two runs at once


@pytest.mark.not_quick
def test_two_releases_at_once_are_never_mixed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sfumato.tables.targets.staging import Stage\n"
        "for n in range(60):\n    with Stage() as stage:\n"
        "        for name in ('a.csv', 'b.html'):\n"
        "            stage.path(Path(sys.argv[1]) / name).write_text(f'{sys.argv[2]} {n}')\n"
        "        stage.publish()\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), letter]) for letter in "xy"]
    while any(run.poll() is None for run in runs):
        with contextlib.suppress(FileNotFoundError):
            recover(tmp_path / "a.csv")
    assert [run.wait(60) for run in runs] == [0, 0]
    assert names(tmp_path) == ["a.csv", "b.html"]
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.html").read_text()


def test_a_reader_waits_for_a_run_that_is_publishing(tmp_path: Path) -> None:
    found = unfinished(tmp_path)
    handle = os.open(found, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    timer = threading.Timer(0.2, os.close, [handle])
    timer.start()
    recover(tmp_path / "a.csv")
    timer.join()
    assert (tmp_path / "b.html").read_text() == "b.html new\n1\n"


def test_a_run_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_publication, "PATIENCE", 0.05)
    found = unfinished(tmp_path)
    with found.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=r"another run is putting .*/a\.csv in place. Run again"):
            recover(tmp_path / "a.csv")
        with pytest.raises(SfumatoError, match="another run is putting"):
            two_files(tmp_path, "newest")
    assert (tmp_path / "a.csv").read_text() == "a.csv old\n1\n"


# Readers without permission


def test_a_reader_who_may_not_write_is_told_what_to_do(open_folder: Path) -> None:
    unfinished(open_folder)
    before = names(open_folder)
    with as_nobody(), pytest.raises(InputError, match=r"was killed before it was done.*sfumato audit .*a\.csv"):
        open_source(open_folder / "a.csv", InputOptions())
    assert names(open_folder) == before


def test_a_reader_who_may_not_write_reads_what_is_complete(open_folder: Path) -> None:
    found = unfinished(open_folder)
    text = found.read_text()
    recover(open_folder / "a.csv")
    found.write_text(text)
    with as_nobody():
        source = open_source(open_folder / "a.csv", InputOptions())
        assert source.names == ("a.csv new",)
    assert found.exists()


def test_a_directory_that_may_not_be_listed_still_shows_its_journal(open_folder: Path) -> None:
    unfinished(open_folder)
    open_folder.chmod(0o711)
    with as_nobody(), pytest.raises(InputError, match="was killed before it was done"):
        open_source(open_folder / "a.csv", InputOptions())


# Journals that are damaged or hostile


def entry(**changes: Any) -> dict[str, Any]:
    return {"name": "a.csv", "folder": None, "mode": 0o644, "number": 1, "certificate": None, **changes}


def content(**changes: Any) -> dict[str, Any]:
    return {"format": 1, "token": "0123abcd", "entries": [entry()], "transaction": None, **changes}


HOSTILE: dict[str, Callable[[], object]] = {
    "half": lambda: '{"format": 1, "tok',
    "empty": lambda: "",
    "a list": lambda: [],
    "a later format": lambda: content(format=2),
    "no entries": lambda: content(entries=[]),
    "a token that is none": lambda: content(token="../../x"),
    "a path for a name": lambda: content(entries=[entry(name="../a.csv")]),
    "no name": lambda: content(entries=[entry(name="")]),
    "a number for a name": lambda: content(entries=[entry(name=7)]),
    "a relative folder": lambda: content(entries=[entry(folder="elsewhere")]),
    "set-user-id": lambda: content(entries=[entry(mode=0o4755)]),
    "a mode that is none": lambda: content(entries=[entry(mode="644")]),
    "a digest that is none": lambda: content(entries=[entry(certificate="x")]),
    "a transaction that is none": lambda: content(transaction={"table": 1, "in_file": True, "certificate": "0" * 64}),
    "a transaction of a file": lambda: content(transaction={"table": "x", "in_file": True, "certificate": "0" * 64}),
    "too long": lambda: content(token="0" * (1 << 21)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_damaged_journal_is_refused_and_nothing_is_changed(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    made = HOSTILE[kind]()
    journal_path(tmp_path / "a.csv").write_text(made if isinstance(made, str) else json.dumps(made))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"is damaged.*Nothing was changed. Check who wrote it, and remove it"):
        open_source(tmp_path / "a.csv", InputOptions())
    with pytest.raises(SfumatoError, match="is damaged"):
        two_files(tmp_path, "new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_a_journal_that_is_no_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    found = journal_path(tmp_path / "a.csv")
    if kind == "link":
        (tmp_path / "other").write_text(json.dumps(content()))
        found.symlink_to("other")
    elif kind == "pipe":
        os.mkfifo(found)
    else:
        found.mkdir()
    with pytest.raises(InputError, match=r"Nothing was changed. Check who wrote it, and remove it"):
        open_source(tmp_path / "a.csv", InputOptions())
    assert os.path.lexists(found)


def test_a_staged_name_that_is_a_link_is_not_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "secret").write_text("of somebody else")
    (tmp_path / f".0123abcd{MARK}a.csv").symlink_to("secret")
    journal_path(tmp_path / "a.csv").write_text(json.dumps(content()))
    with pytest.raises(InputError, match="is damaged"):
        recover(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "x\n1\n"
    assert (tmp_path / f".0123abcd{MARK}a.csv").is_symlink()


def test_the_journal_of_another_user_moves_nothing_in_other_directories(open_folder: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make files of somebody else")
    (tmp_path / "b.html").write_text("old")
    staged = tmp_path / f".0123abcd{MARK}b.html"
    staged.write_text("not audited")
    (open_folder / "a.csv").write_text("x\n1\n")
    found = journal_path(open_folder / "a.csv")
    found.write_text(json.dumps(content(entries=[entry(name="b.html", folder=str(tmp_path))])))
    os.chown(found, NOBODY, NOBODY)
    with pytest.raises(InputError, match="is damaged, or names other files"):
        recover(open_folder / "a.csv")
    assert (tmp_path / "b.html").read_text() == "old"
    assert staged.exists()


def test_a_list_of_files_elsewhere_leads_to_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    others = [tmp_path / "elsewhere" / "mine.txt", tmp_path / "elsewhere" / f".ffffffff{MARK}x"]
    for other in others:
        other.write_text("mine")
    noted = tmp_path / f".0123abcd{MARK}a.csv.elsewhere"
    noted.write_text("".join(f"{json.dumps(str(other))}\n" for other in others) + '"half')
    recover(tmp_path / "a.csv")
    assert not noted.exists()
    assert all(other.exists() for other in others)


# What cannot be finished


def test_a_file_that_cannot_be_taken_back_is_finished_by_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_files(tmp_path, "old")
    replace = Path.replace

    def no_pages(self: Path, to: Path) -> Path:
        if str(to).endswith("b.html"):
            raise PermissionError(1, "no")
        return replace(self, to)

    def no_links(*_: object, **__: object) -> None:
        raise OSError(95, "no hard links")

    monkeypatch.setattr(Path, "replace", no_pages)
    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(
        OutputError, match=r"b\.html could not .*The release is complete, and the next command on .*a\.csv puts it"
    ):
        two_files(tmp_path, "new")
    monkeypatch.undo()
    recover(tmp_path / "a.csv")
    assert [(tmp_path / name).read_text() for name in ("a.csv", "b.html")] == ["a.csv new\n1\n", "b.html new\n1\n"]
    assert names(tmp_path) == ["a.csv", "b.html"]


@pytest.mark.parametrize("name", ["a.csv", "b.html", ".a.csv.sfumato-journal"])
@pytest.mark.parametrize("existing", [False, True])
def test_an_interruption_in_the_middle_of_a_rename_leaves_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, existing: bool
) -> None:
    if existing:
        two_files(tmp_path, "old")
    replace = Path.replace

    def interrupted(self: Path, to: Path) -> Path:
        replace(self, to)
        if to.name == name and self.name.endswith(("-draft", f"{MARK}{name}")):
            monkeypatch.undo()
            raise KeyboardInterrupt
        return to

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        two_files(tmp_path, "new")
    recover(tmp_path / "a.csv")
    found = {path.name: path.read_text().split()[1] for path in tmp_path.iterdir()}
    assert found in ({"a.csv": "new", "b.html": "new"}, {"a.csv": "old", "b.html": "old"} if existing else {})


def test_a_page_that_cannot_follow_its_transaction_follows_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_sqlite(PEOPLE, tmp_path / "a.sqlite", "others")
    location, page = location_of(f"{tmp_path}/a.sqlite#release"), tmp_path / "page.html"
    replace = Path.replace

    def no_pages(self: Path, to: Path) -> Path:
        if to == page:
            raise PermissionError(1, "no")
        return replace(self, to)

    with open_target(location) as target:
        target.write(PEOPLE.schema, PEOPLE.to_batches)
        target.certified()
        monkeypatch.setattr(Path, "replace", no_pages)
        with pytest.raises(OutputError, match=r"page\.html could not be put in place yet.*The release is complete"):
            target.publish("{}", [ReleasePage(page, "page")])
    monkeypatch.undo()
    assert not page.exists()
    open_source(f"{tmp_path}/a.sqlite#release", InputOptions())
    assert page.read_text() == "page"
    assert names(tmp_path) == ["a.sqlite", "page.html"]


def test_without_its_page_nothing_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv.write_csv(PEOPLE, tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)

    def fail(_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ReleaseReport, "page", fail)
    # On a full disk the command gives up its standard output, which must not be the file that pytest captures into.
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert main(["anonymize", "people.csv", "-o", "out.csv", *FLAGS, "--report", "page.html"]) != 0
    assert names(tmp_path) == ["people.csv"]


def test_without_hard_links_releases_are_replaced_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(95, "no hard links")

    monkeypatch.setattr(os, "link", no_links)
    two_files(tmp_path, "old")
    two_files(tmp_path, "new")
    assert (tmp_path / "b.html").read_text() == "b.html new\n1\n"
    assert names(tmp_path) == ["a.csv", "b.html"]
    assert JOURNAL not in "".join(names(tmp_path))
