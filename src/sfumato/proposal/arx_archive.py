"""The parts of an ARX project, a ``.deid`` file: a ZIP archive with XML, hierarchies as CSV, and the data.

The file may come from anybody. Only parts with known names are read, up to a size, and none is unpacked under the name
that the archive gives it. XML may not declare a document type, so it cannot define entities.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sfumato.errors import InputError
from sfumato.files.regular_file import NotRegularError, open_regular
from sfumato.policy.input_settings import MAX_EXPANSION

SUFFIX = ".deid"
MOST_PARTS = 10_000
MOST_XML = 1 << 24  # bytes
MOST_HIERARCHY = 1 << 28
HARMLESS = 1 << 24  # bytes of data that any project may hold
DEEPEST = 32  # elements of XML inside each other
COPIED = 1 << 20  # bytes at once


class ArxArchive:
    """An open project. Use it with ``with``."""

    def __init__(self, path: Path) -> None:
        self.where = f"the file {str(path)!r}"
        self._file = self._open(path)
        try:
            self._size = self._file.seek(0, io.SEEK_END)
            self._zip = zipfile.ZipFile(self._file)
            names = [part.filename for part in self._zip.infolist()]
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            self._file.close()
            raise self._damaged() from None
        self._parts = frozenset(names)
        if len(names) > MOST_PARTS or len(self._parts) < len(names):
            self._file.close()
            raise InputError(f"{self.where} has parts that a project of ARX does not have. Save it again in ARX.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def xml(self, name: str) -> Element:
        """Return the root of an XML part."""
        content = self._read(name, MOST_XML)
        builder = TreeBuilder()
        depth = 0

        def start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > DEEPEST:
                raise self._wrong_part(name)
            builder.start(tag, attributes)

        def end(tag: str) -> None:
            nonlocal depth
            depth -= 1
            builder.end(tag)

        def refuse(*_: object) -> None:
            raise self._wrong_part(name)

        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = builder.data
        parser.StartDoctypeDeclHandler = refuse
        try:
            parser.Parse(content, True)
        except expat.ExpatError:
            raise self._wrong_part(name) from None
        return builder.close()

    def text(self, name: str) -> str:
        """Return the text of a hierarchy. Old versions of ARX write it in the encoding of the system."""
        content = self._read(name, MOST_HIERARCHY)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("cp1252", errors="replace")

    def copy(self, name: str, target: BinaryIO) -> None:
        """Write the bytes of a part to a file."""
        most = max(MAX_EXPANSION * self._size, HARMLESS)
        try:
            with self._zip.open(name) as part:
                while block := part.read(COPIED):
                    most -= len(block)
                    if most < 0:
                        raise InputError(f"{self.where} holds far more data than compressed tables do.")
                    target.write(block)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            raise self._damaged() from None

    def _read(self, name: str, most: int) -> bytes:
        if name not in self._parts:
            raise InputError(f"{self.where} has no {name}: it is no project of ARX, or not a whole one.")
        try:
            with self._zip.open(name) as part:
                content = part.read(most + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
            raise self._damaged() from None
        if len(content) > most:
            raise InputError(f"{self.where} has more than {most >> 20} MiB in {name}, which no project of ARX has.")
        return content

    def _open(self, path: Path) -> io.BufferedReader:
        try:
            return open_regular(path)
        except FileNotFoundError:
            raise InputError(f"{self.where} does not exist. Check the path.") from None
        except NotRegularError:
            raise InputError(f"{str(path)!r} is a pipe or a device. Write the project to a file first.") from None
        except (OSError, ValueError):
            raise InputError(f"{self.where} cannot be opened. Check the path and its permissions.") from None

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.where} cannot be read as a project of ARX: it is damaged, or not what its name says. Save it again "
            "in ARX."
        )

    def _wrong_part(self, name: str) -> InputError:
        return InputError(f"{self.where} has something else than ARX writes in {name}. Save it again in ARX.")
