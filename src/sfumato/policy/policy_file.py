"""The policy file: a TOML file, read with the line of every key."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from sfumato.errors import InputError, OutputError, PolicyError
from sfumato.files.regular_file import read_file
from sfumato.policy.toml_faults import syntax_sentence
from sfumato.policy.toml_lines import Origin, key_lines


def read_policy_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Origin]:
    """Return what the file holds, and the file and lines that error messages name."""
    file = os.fspath(path)
    text = _text(file)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise PolicyError(f"{file}: not valid TOML: it is nested too deeply.") from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(syntax_sentence(file, text, str(error))) from None
    except ValueError:  # Python refuses to convert the number, and tomllib does not catch that
        raise PolicyError(f"{file}: a number has too many digits. Shorten it.") from None
    return data, Origin(file, key_lines(text))


def write_policy_file(file: Path, data: Mapping[str, Any]) -> None:
    try:
        file.write_bytes(tomli_w.dumps(data).encode())
    except UnicodeEncodeError:
        raise PolicyError(
            "the policy has text that UTF-8 cannot hold, such as a file name in another encoding. Rename the file."
        ) from None
    except OSError as error:
        raise OutputError(
            f"the policy cannot be written to {file}: {_reason(error)}. Choose another place, or make it writable."
        ) from None


def _text(file: str) -> str:
    try:
        content = read_file(file)
    except (OSError, ValueError) as error:  # ValueError: the path holds a NUL
        raise InputError(f"the policy {file} cannot be read: {_reason(error)}. Check the path.") from None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"the policy {file} cannot be read: line {line} is not UTF-8. Save it in that encoding."
        ) from None


def _reason(error: OSError | ValueError) -> str:
    """The message of the system without the path, which our message names already."""
    return (getattr(error, "strerror", None) or "it is no path of a file").lower()
