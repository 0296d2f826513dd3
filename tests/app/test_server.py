"""The command: where it listens, what it prints, and when it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from page_client import PageClient

from sfumato.cli import main

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{40,}\n")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def run(*flags: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "sfumato", "app", str(tmp_path), "--no-browser", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def printed_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = ADDRESS.fullmatch(line)
    assert found, line
    return int(found[1])


@pytest.mark.not_quick
def test_it_listens_on_this_machine_alone(start: Callable[..., subprocess.Popen[str]]) -> None:
    port = printed_port(start())
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = [fields[1] for fields in listening if fields[3] == "0A" and fields[1].endswith(f":{port:04X}")]
    assert own == [f"0100007F:{port:04X}"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/")
    assert refused.value.code == 403


@pytest.mark.not_quick
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_the_address_alone_and_ends_when_it_is_asked(
    start: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    process = start()
    printed_port(process)
    time.sleep(0.3)
    process.send_signal(number)
    printed, said = process.communicate(timeout=20)
    assert printed == ""
    assert process.returncode in (0, 128 + number)
    assert "Traceback" not in said


@pytest.mark.not_quick
def test_it_ends_by_itself_when_nobody_uses_it(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("--idle", "0.02")
    printed_port(process)
    assert process.wait(timeout=30) == 0


@pytest.mark.not_quick
def test_another_address_says_what_that_means(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("--host", "0.0.0.0")
    printed_port(process)
    process.terminate()
    _, said = process.communicate(timeout=20)
    assert "can be reached from other machines" in said
    assert "unencrypted" in said


@pytest.mark.not_quick
def test_a_port_that_another_program_has_is_refused_with_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code = main(["app", str(tmp_path), "--no-browser", "--port", str(taken.getsockname()[1])])
    assert code == 2
    assert "Choose another --port" in capsys.readouterr().err


def test_a_folder_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app", str(tmp_path / "nowhere"), "--no-browser"]) == 4
    file = tmp_path / "file"
    file.touch()
    assert main(["app", str(file), "--no-browser"]) == 4
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.not_quick
def test_kill_9_of_the_server_loses_nothing(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    """A project that was made and changed on one server is there on the next, and can be changed on it."""
    (tmp_path / "people.csv").write_text("age,zip\n1,2\n3,4\n", "utf-8")
    process = start()
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    origin = address.partition("/?")[0]
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    text = browser.open(address).read().decode()
    sign = re.search(r'name="sfumato-sign" content="(\w+)"', text)
    assert sign
    for path, fields in (
        ("/projects/create", {"table": "people.csv"}),
        ("/p/people/open/read", {"version": "1", "encoding": "latin-1"}),
    ):
        browser.open(f"{origin}{path}", urllib.parse.urlencode({"sign": sign[1], **fields}).encode())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    page = PageClient(tmp_path)
    assert page.look().count('href="/p/people/open"') == 1
    page.project = "people"
    assert page.opened.state.notes["reading"]["encoding"] == "latin-1"
    page.look("open")
    page.send("read", encoding="cp1252")
    assert page.opened.state.notes["reading"]["encoding"] == "cp1252"
    page.close()
