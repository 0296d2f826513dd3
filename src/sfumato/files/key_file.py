"""The file of a key: 32 random bytes as text, which nobody but its owner may read."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import shlex
import stat
from pathlib import Path

from sfumato.errors import InputError, OutputError
from sfumato.files.regular_file import open_regular

KEY_BYTES = 32
_KEY = re.compile(rb"\s*([0-9a-fA-F]{%d})\s*" % (2 * KEY_BYTES))
_MOST_READ = 1000  # bytes; a key file is much shorter
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_key(path: str | os.PathLike[str]) -> Path:
    """Write a new random key to a file that only its owner may read. An existing file is never replaced."""
    file = Path(path)
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as opened:
            opened.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
    except FileExistsError:
        raise OutputError(
            f"the file {str(file)!r} exists, and a key that is overwritten cannot be made again. Choose another name."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: the path holds a NUL
        raise OutputError(f"the key {str(file)!r} cannot be written{_reason(error)}. Choose another place.") from None
    return file


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Read a key. Refuses a file that other users may read or change."""
    name = f"the key {os.fspath(path)!r}"
    try:
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_MOST_READ)
    except FileNotFoundError:
        raise InputError(f"{name} does not exist. Check the path, or make one with 'sfumato key FILE'.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read{_reason(error)}. Check the path.") from None
    if os.name == "posix" and mode & _OTHERS:
        raise InputError(
            f"other users may read or change {name}. Run: chmod 600 {shlex.quote(os.fspath(path))}. If one of them may "
            "have read it, make another key."
        )
    found = _KEY.fullmatch(content)
    if found is None:
        raise InputError(
            f"{name} is no key: such a file holds {2 * KEY_BYTES} hexadecimal digits. Make one with 'sfumato key FILE'."
        )
    return bytes.fromhex(found[1].decode())


def key_mark(key: bytes) -> str:
    """Return a text by which two uses of a key are recognised. Nobody can compute the key from it."""
    return hmac.digest(key, b"mark of a key", "sha256").hex()


def _reason(error: OSError | ValueError) -> str:
    return f" ({os.strerror(error.errno)})" if isinstance(error, OSError) and error.errno else ""
