"""No English is left on a German page: not on any screen, in what is folded, in a warning or in an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from english_words import english_words
from page_client import PageClient

from sfumato.synthetic import generate

# What is in these comes from a table, a policy or a command.
DATA = frozenset({"bdi", "code", "pre", "q", "script", "style", "title", "noscript"})
SAID = ("aria-label", "placeholder", "alt", "data-done", "data-gone", "aria-valuetext")
CODE = re.compile(r"--[a-z-]+|\[[a-z]+\.[^]]*\]|\b[a-z]+_[a-z_]+\b")  # a flag, a table or a key of a policy
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class SaidTexts(HTMLParser):
    """Collects what a page says, with what is folded, and without names, values, policies and commands."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        is_data = tag in DATA or found.get("id") in ("language", "about-language", "method")
        inside = self._open[-1][1] if self._open else False
        is_drawn = any(above == "svg" for above, _ in self._open)  # nobody hears the parts of an image
        if not (is_data or inside or is_drawn):
            self.texts += [text for key in SAID if (text := found.get(key))]
        if tag not in VOID:
            self._open.append((tag, is_data or inside))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            continue

    def handle_data(self, data: str) -> None:
        if data.strip() and self._open and not self._open[-1][1]:
            self.texts.append(data.strip())


def english_on(html: str) -> dict[str, set[str]]:
    parser = SaidTexts()
    parser.feed(html.partition("<body")[2].partition(">")[2])
    assert len(parser.texts) > 5, html[:500]
    return {text: found for text in parser.texts if (found := english_words(CODE.sub(" ", text)))}


@pytest.fixture
def page(tmp_path: Path, runs_here: None) -> Iterator[PageClient]:
    generate("hospital", 200, tmp_path / "export.csv", flaws=True)
    client = PageClient(tmp_path)
    client.http.headers["accept-language"] = "de"
    yield client
    client.close()


@pytest.mark.not_quick
@pytest.mark.compiled
def test_every_screen_is_german_in_every_state(page: PageClient) -> None:
    found: dict[str, set[str]] = {}

    def see() -> str:
        found.update(english_on(page.text))
        return page.text

    page.look()
    see()
    page.begin("export.csv")
    see()
    page.send("examine")
    page.look("columns")
    assert "Datensätze haben -999" in see()  # a remark about how the table is read
    page.look("open")
    page.send("missing", sentinel=["0"])
    page.send("examine")
    page.look("columns")
    see()
    page.look("try")
    see()
    page.look("columns")
    names = re.findall(r'<h2 id="column-\d+"><bdi>(.*?)</bdi>', page.text)
    for column, role in (("Hauptdiagnose", "sensitive"), ("Name", "other"), ("Patienten-Nr", "pseudonym")):
        page.send("role", names.index(column), role=role)
        see()
    page.send("rest")
    page.look("requirements")
    see()  # k is missing
    page.send("k", k=20)
    page.send("k", status=422, k="many")
    see()
    page.look("try")
    page.send("start", k=3)  # a kept name is refused
    assert "Behaltene Spalten" in see() or "Pseudonyme" in page.text
    page.look("columns")
    page.send("role", names.index("Name"), role="identifier")
    page.send("role", names.index("Patienten-Nr"), role="identifier")
    for position in re.findall(r"hierarchies\?column=(\d+)", page.look("hierarchies")):
        page.look("hierarchies", column=position)
        see()
    page.look("requirements")
    page.send("k", k=900)
    page.send("check")
    assert "nicht erfüllbar" in see()
    page.send("apply")
    page.look("requirements")
    page.send("k", k=3)
    page.send("add", kind="distinct")
    page.send("check")
    see()
    page.look("risk")
    page.send("measure", population=5000)
    see()
    page.send("measure", status=422, population=0)
    see()
    page.look("try")
    page.send("start", suppressed="5")
    beside = re.search(r'href="(/p/export/files/runs/\d+/private.html)"', page.look("try"))
    assert beside is not None
    assert '<html lang="de"' in page.http.get(beside[1]).text
    page.send("curve")
    see()
    page.look("check")
    see()
    page.send("read", line=[str(number) for number in range(40)])
    page.look("publish")
    see()
    page.send("prepare", title="Aufenthalte", author="Stelle", format="csv")
    see()
    page.send("publish")
    for screen in ("publish", "open", "columns", "hierarchies", "requirements", "risk", "try", "check"):
        page.look(screen)
        see()
    assert page.opened.locked
    for address in ("/p/export/nowhere", "/p/nothing/open", "/p/export/files/runs/1/x"):
        page.text = page.http.get(address).text
        see()
    assert sorted(found) == []
