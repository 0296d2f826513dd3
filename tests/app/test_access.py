"""Who gets in: one browser, its own pages, and nobody else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_client import HOST, PORT, PageClient
from starlette.testclient import TestClient

from sfumato.app.access import POLICY

ORIGIN = f"http://{HOST}:{PORT}"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageClient]:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("age,zip\n31,10115\n44,10117\n", "utf-8")
    (tmp_path / "secret.csv").write_text("age,zip\n1,2\n", "utf-8")
    client = PageClient(tmp_path / "data")
    yield client
    client.close()


def stranger(page: PageClient) -> TestClient:
    return TestClient(page.application, base_url=ORIGIN, follow_redirects=False)


@pytest.mark.parametrize("path", ["/", "/p/people/open", "/static/style.css", "/static/script.js", "/p/people/events"])
def test_without_the_token_nothing_is_shown(page: PageClient, path: str) -> None:
    answer = stranger(page).get(path)
    assert answer.status_code == 403
    assert "people" not in answer.text


def test_a_wrong_token_opens_nothing(page: PageClient) -> None:
    assert stranger(page).get("/?token=wrong").status_code == 403
    assert stranger(page).get("/?token=").status_code == 403


def test_the_token_works_once_and_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(tmp_path: Path) -> None:
    from sfumato.app.access import Access
    from sfumato.app.application import make_application
    from sfumato.app.data_folder import DataFolder
    from sfumato.app.project import ProjectStore

    class Unused:
        def now(self) -> None: ...

    access = Access({HOST}, PORT)
    token = access.token
    client = TestClient(
        make_application(ProjectStore(DataFolder(tmp_path)), access, Unused()), base_url=ORIGIN, follow_redirects=False
    )
    first = client.get(f"/?token={token}")
    assert first.status_code == 303
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/").status_code == 200
    assert client.get(f"/?token={token}").headers["location"] == "/"  # the same browser may open it again
    client.cookies.clear()
    assert client.get(f"/?token={token}").status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:8111"]
)
def test_a_foreign_host_is_refused(page: PageClient, host: str) -> None:
    answer = page.http.get("/", headers={"host": host})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_change_from_another_site_is_refused(page: PageClient, headers: dict[str, str]) -> None:
    sign = page.access.sign
    answer = page.http.post("/projects/create", data={"sign": sign, "table": "people.csv"}, headers=headers)
    assert answer.status_code == 403
    assert page.store.projects() == []


def test_a_change_without_the_sign_of_the_page_is_refused(page: PageClient) -> None:
    for data in ({"table": "people.csv"}, {"table": "people.csv", "sign": "0" * 64}):
        assert page.http.post("/projects/create", data=data).status_code == 403
    assert page.http.post("/upload?name=a.csv", content=b"a\n1\n").status_code == 403
    assert page.store.projects() == []


def test_every_answer_forbids_the_browser_to_load_or_run_anything_foreign(page: PageClient) -> None:
    page.begin("people.csv")
    for path in ("/", "/p/people/open", "/static/style.css", "/p/people/nothing", "/p/nothing/open", "/nothing"):
        headers = page.http.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")


def test_no_page_has_a_style_or_a_script_inside(page: PageClient) -> None:
    page.begin("people.csv")
    for screen in ("open", "columns", "risk", "try", "check", "publish"):
        text = page.look(screen)
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)|javascript:", text)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.csv",
        "/etc/passwd",
        "data/../../secret.csv",
        "",
        ".",
        "people.csv\0",
        "linked.csv",
        "inside/secret.csv",
    ],
)
def test_a_path_outside_the_folder_is_refused(page: PageClient, path: str) -> None:
    root = page.store.folder.root
    (root / "linked.csv").symlink_to(root.parent / "secret.csv")
    (root / "inside").symlink_to(root.parent)
    answer = page.http.post("/projects/create", data={"sign": page.access.sign, "table": "", "path": path})
    assert answer.status_code == 422
    assert "not a file in the folder" in answer.text
    assert page.store.projects() == []


@pytest.mark.parametrize("name", ["../people", "..%2Fpeople", "people.sfumato", "a b", "." * 3])
def test_a_name_that_is_no_project_is_not_found(page: PageClient, name: str) -> None:
    assert page.http.get(f"/p/{name}/open").status_code in (404, 405)  # a slash makes it another address


def test_files_of_a_project_are_served_from_its_public_folders_only(page: PageClient) -> None:
    page.begin("people.csv")
    directory = page.opened.directory
    (directory / "releases" / "report.html").write_text("<!doctype html>", "utf-8")
    (directory / "releases" / "link.html").symlink_to(directory / "policy.toml")
    base = f"/p/{page.project}/files"
    assert page.http.get(f"{base}/releases/report.html").headers["content-security-policy"].endswith("sandbox")
    for path in (
        "releases/link.html",
        "releases/../policy.toml",
        "releases/%2e%2e/policy.toml",
        "history/000001.toml",
        "/x",
    ):
        assert page.http.get(f"{base}/{path}").status_code in (404, 405)


def test_a_table_that_becomes_a_link_out_of_the_folder_is_not_shown(page: PageClient) -> None:
    page.begin("people.csv")
    table = page.store.folder.root / "people.csv"
    table.unlink()
    table.symlink_to(page.store.folder.root.parent / "secret.csv")
    assert "not a file in the folder" in page.look("open")


def test_an_upload_is_a_private_copy_and_has_a_limit(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.app import application

    monkeypatch.setattr(application, "LARGEST_UPLOAD", 1000)
    headers = {"x-sfumato-sign": page.access.sign}
    small, large = b"age\n1\n", b"age\n" + b"1\n" * 1000
    answer = page.http.post("/upload?name=mine.csv", content=small, headers=headers)
    assert (answer.status_code, answer.text) == (201, "/p/mine/open")
    copy = page.store.folder.root / "mine.sfumato" / "table" / "mine.csv"
    assert copy.read_bytes() == small
    assert os.stat(copy).st_mode & 0o077 == 0
    assert page.http.post("/upload?name=big.csv", content=large, headers=headers).status_code == 413

    def pieces() -> Iterator[bytes]:
        yield from (large[start : start + 100] for start in range(0, len(large), 100))

    assert (
        page.http.post("/upload?name=big.csv", content=pieces(), headers=headers).status_code == 413
    )  # no length is told
    for name in ("a/../../x.csv", "run.exe", ".hidden.csv", "", "x" * 300 + ".csv"):
        assert page.http.post("/upload", params={"name": name}, content=small, headers=headers).status_code == 415
    assert [project.name for project in page.store.projects()] == ["mine"]
    assert not [path for path in page.store.folder.root.iterdir() if path.name.startswith(".sfumato-upload")]


def test_language_and_theme_lead_back_to_our_own_pages_only(page: PageClient) -> None:
    sign = page.access.sign
    for back in ("//evil.example/", "http://evil.example/", "evil"):
        data = {"sign": sign, "language": "de", "theme": "dark", "back": back}
        answer = page.http.post("/settings", data=data, follow_redirects=False)
        assert answer.headers["location"] == "/"
    assert '<html lang="de" data-theme="dark">' in page.http.get("/").text
