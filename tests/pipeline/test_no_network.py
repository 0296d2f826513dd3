"""Tables are not sent anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

SCRIPT = """
import sys
from sfumato.cli.main import main

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"):
        raise SystemExit(f"the run asked for {event}")

sys.addaudithook(refuse)
sys.exit(main(sys.argv[1:]))
"""

pytestmark = [pytest.mark.compiled, pytest.mark.not_quick]


def run(*arguments: str | Path, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_a_run_from_file_to_file_connects_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    table, release = tmp_path / "census.parquet", tmp_path / "release.csv"
    sfumato.generate("census", 300, table)
    policy = ["--policy", tmp_path / "census.policy.toml", "-k", "5"]
    done = run("anonymize", table, "-o", release, *policy, "--report", tmp_path / "report.html")
    assert (done.returncode, release.exists(), (tmp_path / "report.html").exists()) == (0, True, True), done.stderr
    assert run("audit", release).returncode == 0


def test_a_connection_would_be_noticed() -> None:
    tries = SCRIPT.replace("sys.exit(main", "import socket; socket.create_connection(('127.0.0.1', 9))\nsys.exit(main")
    assert "the run asked for socket." in run("methods", script=tries).stderr
