"""Tables that are large, wide or hostile: the page shows them, and no name or cell becomes markup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_client import PageClient, alarm

from sfumato.app import background_run
from sfumato.app.preview import preview
from sfumato.app.worker import do_run

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\u202eb",
    "=cmd|' /C calc'!A0",
    "{0} {count} %s",
    "x" * 3000,
    "Größe in cm",
    "o'clock & co",
)
TAGS = frozenset({"script", "img"})


class DoneAtOnce:
    """Stands for the process of a run."""

    def __init__(self, command: list[str], **_: object) -> None:
        do_run(Path(command[-1]))

    def poll(self) -> int:
        return 0


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def harmless(text: str) -> None:
    """See that a page has its own script and no other, and no attribute that runs one."""
    parser = _Tags()
    parser.feed(text)
    scripts = [attributes for tag, attributes in parser.found if tag == "script"]
    assert scripts == [{"src": "/static/script.js", "defer": None}]
    for tag, attributes in parser.found:
        assert tag != "img" or str(attributes["src"]).startswith("/p/")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_run.subprocess, "Popen", DoneAtOnce)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageClient]:
    client = PageClient(tmp_path)
    yield client
    client.close()


def write(path: Path, names: list[str], rows: list[list[str]]) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])


@pytest.mark.compiled
@pytest.mark.not_quick
def test_hostile_names_and_cells_are_text_on_every_screen(page: PageClient) -> None:
    names = list(HOSTILE)
    values = [[row % 5 if position < 2 else row // 5 % 3 for position in range(len(names))] for row in range(60)]
    rows = [[f"{name[:20]} {value}" for name, value in zip(names, record, strict=True)] for record in values]
    write(page.store.folder.root / "evil <b>.csv", names, rows)
    harmless(page.look())
    page.begin("evil%20%3Cb%3E.csv")
    harmless(page.text)
    page.send("examine")
    harmless(page.look("columns"))
    assert page.text.count('class="card role-') == len(names)
    for position in range(len(names)):
        page.look("columns")
        page.send(
            "role", position, role="quasi-identifier" if position < 2 else "sensitive" if position < 4 else "other"
        )
    assert page.opened.policy.columns[HOSTILE[2]].role == "sensitive"  # what cannot be shown is still the right column
    page.look("risk")
    page.send("measure", population="1000")
    harmless(page.look("risk"))
    page.look("try")
    page.send("start", k="3", name="<b>bold</b>")
    harmless(page.look("try"))
    assert "&lt;b&gt;bold&lt;/b&gt;" in page.text
    harmless(page.look("check"))
    page.send("read", line=[str(line) for line in range(40)])
    page.look("publish")
    page.send("prepare", title="</title><script>alert(1)</script>", author="a", format="csv")
    harmless(page.look("publish"))
    page.send("publish")
    harmless(page.look("publish"))
    assert "published" in page.opened.state.notes


@pytest.mark.compiled
@pytest.mark.not_quick
def test_500_columns_are_shown_in_parts_and_each_can_be_decided(page: PageClient) -> None:
    names = [f"column {number}" for number in range(500)]
    write(
        page.store.folder.root / "wide.csv",
        names,
        [[str((row * number) % 7) for number in range(500)] for row in range(30)],
    )
    page.begin("wide.csv")
    assert "440 more columns" in page.text
    page.send("examine")
    assert page.look("columns").count('class="card role-') == 120
    page.look("columns", **{"from": "480"})
    assert page.text.count('class="card role-') == 20
    page.send("role", 19, role="sensitive")
    assert page.opened.policy.columns["column 499"].role == "sensitive"
    page.look("columns")
    page.send("rest")
    assert "still to decide" not in page.look("columns")


@pytest.mark.compiled
@pytest.mark.not_quick
def test_100_000_distinct_values_make_one_small_card(page: PageClient) -> None:
    write(
        page.store.folder.root / "many.csv", ["code", "group"], [[f"K{row:06}", str(row % 9)] for row in range(100_000)]
    )
    page.begin("many.csv")
    page.send("examine")
    text = page.look("columns")
    assert "100,000 distinct, 100,000 unique" in text
    assert len(text) < 200_000


def test_a_file_of_2_gigabytes_is_previewed_from_its_beginning(tmp_path: Path) -> None:
    """The file is sparse: behind its first rows are two gigabytes of nothing, which no preview reads."""
    path = tmp_path / "large.csv"
    path.write_text("age;zip\n" + "".join(f"{20 + row % 50};{10000 + row}\n" for row in range(200_000)), "utf-8")
    os.truncate(path, 2 << 30)
    before = _bytes_read()
    seen = preview(path, {})
    assert (seen.names, len(seen.records), seen.settings.separator) == (("age", "zip"), 20, ";")
    assert _bytes_read() - before < 32 << 20


def _bytes_read() -> int:
    return next(
        int(line.split()[1]) for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("rchar")
    )


def test_a_fault_of_the_file_is_told_and_a_click_on_another_line_makes_it_the_header(page: PageClient) -> None:
    path = page.store.folder.root / "titled.csv"
    path.write_text("Report of 2024,,\n\nage,zip,sex\n31,10115,f\n32,10117,m\n", "utf-8")
    page.begin("titled.csv")
    assert "cannot be read like this" in page.text
    lines = [form.fields["line"] for form in page.forms("header")]
    page.send("header", lines.index(["3"]))
    assert "cannot be read like this" not in page.text
    assert page.opened.state.notes["reading"]["header_row"] == 3
    page.send("examine")
    assert page.opened.policy.input.header_row == 3 or "examined" not in page.opened.state.notes
    page.look("columns")
    assert list(page.opened.policy.columns) == ["age", "zip", "sex"]
    assert alarm(page.text) == ""
