"""A project: the path of a table, the policy with its history, and the folders of runs and releases.

    NAME.sfumato/
      project.json          title, table, and which step of the history is the current policy
      policy.toml           the current policy, for the command line and for people
      history/000001.toml   every policy there has been
      taxonomies/           taxonomies that were made on the page
      runs/                 background runs, each in a folder of its own
      releases/             what may be published
      private/              what must not be

A change writes a file of the history first, then ``project.json``, which makes it valid, then ``policy.toml``. After a
crash in between, ``policy.toml`` is written anew. If somebody has edited ``policy.toml``, that is a step like others.
"""

from __future__ import annotations

import os
import re
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomli_w

from sfumato.app.data_folder import PROJECT_SUFFIX, DataFolder
from sfumato.app.durable_files import private_directory, read_json, write_durably, write_json
from sfumato.errors import WITHOUT_UMLAUTS, InputError, OutputError, PolicyError
from sfumato.policy import Policy
from sfumato.tables.targets.file_operations import lock

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
FOLDERS = ("history", "taxonomies", "runs", "releases", "private")

Change = Callable[[dict[str, Any]], dict[str, Any]]


class OutdatedPageError(Exception):
    """Another tab has changed the project since this page was drawn."""


class LockedProjectError(Exception):
    """The project has been published and is not changed any more."""


@dataclass(frozen=True)
class Step:
    """One policy of the history. what: the key of a text that says what was changed."""

    number: int
    what: str
    time: str


@dataclass(frozen=True)
class ProjectState:
    """What ``project.json`` holds. version: rises with every change; a page with an older one changes nothing."""

    title: str
    table: str
    created: str
    version: int
    steps: tuple[Step, ...]
    current: int
    notes: Mapping[str, Any]
    """What is known beside the policy: settings that were tried, lines that were read, the release."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> ProjectState:
        return cls(**{**data, "steps": tuple(Step(**step) for step in data["steps"])})

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "steps": [step.__dict__ for step in self.steps]}


class Project:
    """One project of a folder. Changes are made one after the other, by one server at a time."""

    def __init__(self, folder: DataFolder, directory: Path) -> None:
        self.folder = folder
        self.directory = directory
        self.name = directory.name.removesuffix(PROJECT_SUFFIX)
        self._changing = threading.RLock()
        self._held: int | None = None
        self._policy: tuple[str, Policy] | None = None

    @property
    def state(self) -> ProjectState:
        data = read_json(self.directory / "project.json")
        if data is None:
            raise InputError("there is no such project. Go back to the list of projects.")
        return ProjectState.of(data)

    @property
    def table(self) -> Path:
        """The real path of the table, which must still be under the folder."""
        return self.folder.path(self.state.table)

    @property
    def policy_text(self) -> str:
        """The current policy as TOML."""
        state = self.state
        return (self.directory / "history" / f"{state.current:06}.toml").read_text("utf-8")

    @property
    def policy(self) -> Policy:
        """The current policy. Relative paths in it start from the folder of the project."""
        text = self.policy_text
        if self._policy is None or self._policy[0] != text:
            self._policy = text, self.policy_of(text)
        return self._policy[1]

    def policy_of(self, text: str) -> Policy:
        return checked_policy(self, tomllib.loads(text))

    @property
    def locked(self) -> bool:
        """Whether a release was published, after which nothing is changed."""
        return "published" in self.state.notes

    def change(self, version: int, what: str, change: Change) -> None:
        """Make a policy from the current one. what: the key of a text. Raises OutdatedPageError for another version."""
        with self._writing(version) as state:
            data = change(self.policy.to_dict())
            policy = checked_policy(self, data)
            text = tomli_w.dumps(policy.to_dict())
            if text != self.policy_text:
                self._commit(state, what, text)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Let no other thread change the project meanwhile."""
        with self._changing:
            yield

    def check_version(self, version: int) -> None:
        """Refuse what comes from an older page, or changes a project that is locked."""
        with self._writing(version):
            return

    def note(self, version: int | None, **notes: Any) -> None:
        """Remember something beside the policy; None forgets it. Without a version, whatever the page showed."""
        with self._writing(version) as state:
            kept = {**state.notes, **notes}
            kept = {key: value for key, value in kept.items() if value is not None}
            self._save(ProjectState(**{**state.__dict__, "version": state.version + 1, "notes": kept}))

    def undo(self, version: int) -> None:
        self._move(version, -1)

    def redo(self, version: int) -> None:
        self._move(version, +1)

    def neighbours(self) -> tuple[Step | None, Step | None]:
        """The step that undo takes back, and the one that redo makes again."""
        state = self.state
        index = self._index(state)
        undone = state.steps[index] if index > 0 else None
        return undone, state.steps[index + 1] if index + 1 < len(state.steps) else None

    def adopt_edits(self) -> None:
        """Make an edited ``policy.toml`` the next step of the history, or restore the file if a crash left it behind.

        Raises PolicyError if somebody has edited it and it is no policy.
        """
        with self._changing:
            state, file = self.state, self.directory / "policy.toml"
            current = self.policy_text
            try:
                edited = file.read_text("utf-8")
            except (OSError, UnicodeError):
                edited = current
            if edited == current and file.exists():
                return
            if self.locked or any(edited == self._history(step.number) for step in state.steps):
                self._hold()
                write_durably(file, current.encode())
                return
            policy = Policy.load(file)
            policy = checked_policy(self, policy.to_dict())
            self._hold()
            self._commit(state, "page.steps.edited", tomli_w.dumps(policy.to_dict()))

    def _history(self, number: int) -> str:
        return (self.directory / "history" / f"{number:06}.toml").read_text("utf-8")

    def _index(self, state: ProjectState) -> int:
        return next(index for index, step in enumerate(state.steps) if step.number == state.current)

    def _move(self, version: int, by: int) -> None:
        with self._writing(version) as state:
            index = self._index(state) + by
            if not 0 <= index < len(state.steps):
                raise OutdatedPageError
            number = state.steps[index].number
            self._save(ProjectState(**{**state.__dict__, "version": state.version + 1, "current": number}))
            write_durably(self.directory / "policy.toml", self._history(number).encode())

    def _commit(self, state: ProjectState, what: str, text: str) -> None:
        number = 1 + max((step.number for step in state.steps), default=0)
        write_durably(self.directory / "history" / f"{number:06}.toml", text.encode())
        kept = state.steps[: self._index(state) + 1]  # what was undone cannot be made again after another change
        step = Step(number, what, _now())
        changed = {"version": state.version + 1, "steps": (*kept, step), "current": number}
        self._save(ProjectState(**{**state.__dict__, **changed}))
        write_durably(self.directory / "policy.toml", text.encode())

    def _save(self, state: ProjectState) -> None:
        write_json(self.directory / "project.json", state.as_dict())

    @contextmanager
    def _writing(self, version: int | None) -> Iterator[ProjectState]:
        with self._changing:
            self._hold()
            state = self.state
            if version is not None and "published" in state.notes:
                raise LockedProjectError
            if version is not None and version != state.version:
                raise OutdatedPageError
            yield state

    def _hold(self) -> None:
        """Keep every other server from writing to this project until this one ends."""
        if self._held is not None:
            return
        handle = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(handle)
        except BlockingIOError:
            os.close(handle)
            raise OutputError(
                "this project is open in another Sfumato on this machine. Go on there, or end it first."
            ) from None
        self._held = handle

    def close(self) -> None:
        """Let another server write."""
        with self._changing:
            if self._held is not None:
                os.close(self._held)
                self._held = None


def checked_policy(project: Project, data: Mapping[str, Any]) -> Policy:
    """Make a policy of a project, and refuse one that names a file outside the folder."""
    policy = Policy.from_dict(data, project.directory)
    named = [*policy.taxonomy_files.values()]
    named += [path for path in (policy.input.layout, policy.privacy.pseudonym_key) if path is not None]
    for text in named:
        path = Path(os.path.realpath(project.directory / text))
        if not path.is_relative_to(project.folder.root):
            raise PolicyError("the policy names a file outside the folder of the page. Copy that file into the folder.")
    return policy


class ProjectStore:
    """The projects of a folder."""

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self._open: dict[str, Project] = {}
        self._opening = threading.Lock()

    def projects(self) -> list[Project]:
        """All projects, the last one changed first."""
        found = []
        for entry in os.scandir(self.folder.root):
            name = entry.name.removesuffix(PROJECT_SUFFIX)
            if entry.name.endswith(PROJECT_SUFFIX) and NAME.fullmatch(name) and entry.is_dir(follow_symlinks=False):
                file = Path(entry.path) / "project.json"
                with suppress(OSError):
                    found.append((file.stat().st_mtime_ns, self.project(name)))
        return [project for _, project in sorted(found, key=lambda pair: -pair[0])]

    def project(self, name: str) -> Project:
        """The project of this name. Raises InputError if there is none."""
        directory = self.folder.root / f"{name}{PROJECT_SUFFIX}"
        if not NAME.fullmatch(name) or directory.is_symlink() or not (directory / "project.json").is_file():
            raise InputError("there is no such project. Go back to the list of projects.")
        with self._opening:
            return self._open.setdefault(name, Project(self.folder, directory))

    def create(self, table: str, policy: Policy | None = None) -> Project:
        """Make a project for a table under the folder, with a first policy if there is one."""
        title = _title(self.folder.path(table))
        return self._filled(self._new_directory(title), title, table, policy)

    def create_with_copy(self, file_name: str, copy: Path) -> Project:
        """Make a project with a private copy of a table, which is moved into it."""
        title = _title(Path(file_name))
        directory = self._new_directory(title)
        private_directory(directory / "table")
        copy.rename(directory / "table" / file_name)
        return self._filled(directory, title, f"{directory.name}/table/{file_name}", None)

    def _filled(self, directory: Path, title: str, table: str, policy: Policy | None) -> Project:
        for name in FOLDERS:
            private_directory(directory / name)
        start = Policy() if policy is None else policy
        text = tomli_w.dumps(start.with_paths_from(directory))
        write_durably(directory / "history" / "000001.toml", text.encode())
        step = Step(1, "page.steps.created", _now())
        state = ProjectState(title, table, _now(), 1, (step,), 1, {})
        write_json(directory / "project.json", state.as_dict())
        write_durably(directory / "policy.toml", text.encode())
        return self.project(directory.name.removesuffix(PROJECT_SUFFIX))

    def _new_directory(self, title: str) -> Path:
        plain = unicodedata.normalize("NFKD", title.translate(WITHOUT_UMLAUTS)).encode("ascii", "ignore").decode()
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:60] or "table"
        number = 1
        while True:
            directory = self.folder.root / f"{stem}{'' if number == 1 else f'-{number}'}{PROJECT_SUFFIX}"
            try:
                directory.mkdir(mode=0o700)
                return directory
            except FileExistsError:
                number += 1
            except OSError as error:
                raise OutputError(
                    f"no project can be made in the folder: {os.strerror(error.errno or 0).lower()}. Make it writable."
                ) from None

    def close(self) -> None:
        for project in self._open.values():
            project.close()


def _title(path: Path) -> str:
    return path.name.partition(".")[0] or path.name


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
