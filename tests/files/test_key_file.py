"""Files of keys: how they are made, and which are refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sfumato.errors import InputError, OutputError
from sfumato.files.key_file import key_mark, make_key, read_key


def test_a_key_is_random_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        first, second = make_key(tmp_path / "a.key"), make_key(str(tmp_path / "b.key"))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert len(read_key(first)) == 32
    assert read_key(first) == bytes.fromhex(first.read_text().strip())
    assert read_key(first) != read_key(second)
    assert key_mark(read_key(first)) == key_mark(read_key(first)) != key_mark(read_key(second))


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    file = make_key(tmp_path / "a.key")
    before = file.read_bytes()
    with pytest.raises(OutputError, match="exists, and a key that is overwritten cannot be made again"):
        make_key(file)
    (tmp_path / "link.key").symlink_to(tmp_path / "elsewhere.key")
    with pytest.raises(OutputError, match="exists"):
        make_key(tmp_path / "link.key")
    assert file.read_bytes() == before
    assert not (tmp_path / "elsewhere.key").exists()


def test_a_key_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot be written \(No such file or directory\)\. Choose another place\."):
        make_key(tmp_path / "missing" / "a.key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_key_that_others_may_read_or_change_is_refused_with_the_command_that_helps(mode: int, tmp_path: Path) -> None:
    file = make_key(tmp_path / "my key")
    file.chmod(mode)
    with pytest.raises(InputError) as caught:
        read_key(file)
    assert f"Run: chmod 600 '{file}'." in str(caught.value)
    assert file.read_text().strip() not in str(caught.value)
    file.chmod(0o600)
    assert len(read_key(file)) == 32


@pytest.mark.parametrize("text", ["", "secret", "0" * 63, "0" * 65, "g" * 64, "0" * 64 + "\n" + "0" * 64])
def test_another_file_is_no_key_and_is_not_shown(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.key"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(InputError) as caught:
        read_key(file)
    assert str(caught.value) == (
        f"the key {str(file)!r} is no key: such a file holds 64 hexadecimal digits. Make one with 'sfumato key FILE'."
    )


def test_a_missing_key_and_a_directory_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not exist\. Check the path, or make one with 'sfumato key FILE'"):
        read_key(tmp_path / "no.key")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        read_key(tmp_path)
