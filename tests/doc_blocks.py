"""The blocks of code in a page of Markdown: what they are, how they are run, and what they show.

A block is fenced or indented by four spaces. These kinds are known without being told:

- ``sh`` fences, and indented blocks that begin with ``sfumato``, ``make``, ``pip`` or ``spark-submit``, are commands;
- ``python`` fences are run; a line that begins with ``# `` shows the value of the expression above it.

Of any other block a comment above it, which readers of the page do not see, says what it is. Several may be combined.

- ``<!-- output -->``: what the last command or Python block before it printed; ``<!-- output: 5 lines -->``: its
  beginning
- ``<!-- file: NAME -->``: a file that the following blocks use
- ``<!-- shows: NAME -->``: what is in a file
- ``<!-- merged into: NAME -->``: a part of a policy; the merged policy is saved and must be valid
- ``<!-- exit code: N -->``: how the last command of the block ends, if not with 0
- ``<!-- shortened: OLD -> NEW -->``: what is replaced in the block before it is run, to save time
- ``<!-- not run: REASON -->``

``<!-- run`` and ``<!-- run python`` begin comments of several lines with what a page takes for granted, such as the
table of its examples.
"""

from __future__ import annotations

import ast
import io
import os
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import tomli_w

from sfumato import Policy
from sfumato.cli import main

INDENT = "    "
WIDTH = 120
COMMANDS = ("sfumato ", "make ", "pip ", "spark-submit ")
FENCES = {"sh": "shell", "python": "python"}
MARKS = ("output", "file", "shows", "merged into", "exit code", "shortened", "not run")
COMMENT = re.compile(r"<!-- (?P<mark>" + "|".join(MARKS) + r")(?:: (?P<value>.+))? -->")
HIDDEN = {"<!-- run": "shell", "<!-- run python": "python"}
HEREDOC = re.compile(r"<<'(\w+)'$")


@dataclass(frozen=True)
class Block:
    """A block of a page. ``start`` and ``end`` count the lines of its content from 0; ``end`` is excluded."""

    page: str
    kind: str | None
    start: int
    end: int
    indent: str
    text: str
    marks: dict[str, list[str]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page}, line {self.start + 1}"

    @property
    def hidden(self) -> bool:
        """Whether readers do not see it."""
        return self.indent == "hidden"

    def mark(self, name: str) -> str | None:
        """Return what the comment above says after the colon, or None without such a comment."""
        return self.marks[name][0] if name in self.marks else None

    @property
    def runnable(self) -> str:
        """Return the text with what is shortened for the test."""
        text = self.text
        for change in self.marks.get("shortened", ()):
            old, arrow, new = change.partition(" -> ")
            assert arrow, f"{self.place}: write 'shortened: OLD -> NEW'"
            assert old in text, f"{self.place}: there is no {old!r} to shorten"
            text = text.replace(old, new)
        return text

    @property
    def commands(self) -> list[str]:
        """Return the commands of a block for a shell, each with its continued lines and here-document."""
        commands: list[str] = []
        lines = iter(self.runnable.splitlines())
        for line in lines:
            if not line.strip():
                continue
            command = line
            while command.endswith("\\"):
                command += "\n" + next(lines)
            if end := HEREDOC.search(command):
                for more in lines:
                    command += "\n" + more
                    if more == end[1]:
                        break
            commands.append(command)
        return commands


def blocks_of(page: Path, name: str) -> list[Block]:
    """Return the blocks of a page in order. Fails for a block of which nothing says what it is."""
    lines = page.read_text("utf-8").splitlines()
    blocks: list[Block] = []
    marks: dict[str, list[str]] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        if comment := COMMENT.fullmatch(line.strip()):
            marks.setdefault(comment["mark"], []).append(comment["value"] or "")
            number += 1
            continue
        if line.strip().startswith("<!-- ") and line.split(":")[0].removeprefix("<!-- ").split(" -->")[0] in MARKS:
            raise AssertionError(f"{name}, line {number + 1}: the comment is not understood")
        if line in HIDDEN:
            end = lines.index("-->", number)
            kind: str | None = HIDDEN[line]
            block = Block(name, kind, number + 1, end, "hidden", "\n".join(lines[number + 1 : end]) + "\n", marks)
        elif line.startswith("```"):
            end = lines.index("```", number + 1)
            kind = FENCES.get(line.removeprefix("```"))
            block = Block(name, kind, number + 1, end, "", "\n".join(lines[number + 1 : end]) + "\n", marks)
        elif line.startswith(INDENT) and (number == 0 or not lines[number - 1].strip()):
            end = _end_of_indented(lines, number)
            content = [text.removeprefix(INDENT) for text in lines[number:end]]
            kind = "shell" if content[0].startswith(COMMANDS) else None
            block = Block(name, kind, number, end, INDENT, "\n".join(content) + "\n", marks)
        else:
            assert not line.strip() or not marks, f"{name}, line {number + 1}: no block follows the comment above"
            number += 1
            continue
        assert block.kind or marks, f"{block.place}: say in a comment above what this block is (tests/doc_blocks.py)"
        blocks.append(block)
        marks = {}
        number = end + (block.indent != INDENT)
    return blocks


def _end_of_indented(lines: list[str], start: int) -> int:
    end = start
    for number in range(start, len(lines)):
        if lines[number].startswith(INDENT):
            end = number + 1
        elif lines[number].strip():
            break
    return end


@dataclass
class Shown:
    """What a page shows at some lines, and what there should be."""

    block: Block
    start: int
    end: int
    shown: list[str]
    found: list[str]

    @property
    def differs(self) -> bool:
        return [*map(_without_times, self.shown)] != [*map(_without_times, self.found)]


def _without_times(line: str) -> str:
    """Replace what differs from run to run and from version to version."""
    line = re.sub(r"\b\d+(\.\d+)? seconds?", "N seconds", line)
    return re.sub(r"Sfumato \d+\.\d+\.\d+\w*", "Sfumato N", line).rstrip()


def shown_output(block: Block, printed: str, directory: Path) -> Shown:
    """Compare a block with the output of what was run before it."""
    wanted = block.mark("output")
    lines = printed.replace(f"{directory}{os.sep}", "").strip("\n").splitlines()
    found = [part.rstrip() for line in lines for part in _wrapped(line)]
    if wanted:
        found = found[: int(wanted.removesuffix(" lines"))]
    return Shown(block, block.start, block.end, block.text.splitlines(), found)


def _wrapped(line: str) -> list[str]:
    """Break a line that is too wide for a page. Lines of tables are narrower."""
    return textwrap.wrap(line, WIDTH, subsequent_indent=8 * " ", break_on_hyphens=False) or [""]


def run_page(blocks: list[Block], directory: Path) -> Iterator[Shown]:
    """Run the blocks of a page in order, in this process, and yield what they show.

    ``directory`` is the working directory; the user's home, ``~``, is taken to be the one above.
    """
    space: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks:
        if "not run" in block.marks:
            continue
        if (name := block.mark("file")) is not None:
            Path(name).write_text(block.text, "utf-8")
        elif (name := block.mark("shows")) is not None:
            yield Shown(block, block.start, block.end, block.text.splitlines(), Path(name).read_text().splitlines())
        elif (name := block.mark("merged into")) is not None:
            _merge(Path(name), block)
        elif "output" in block.marks:
            yield shown_output(block, printed, directory)
        elif block.kind == "python":
            with redirect_stdout(io.StringIO()) as stream, redirect_stderr(stream):
                values = list(_run_python(block, {} if block.hidden else space))
            printed = stream.getvalue()
            yield from values
        else:
            assert block.kind == "shell", f"{block.place}: nothing says how to run this block"
            for number, command in enumerate(block.commands, 1):
                last = number == len(block.commands)
                expected = int(block.mark("exit code") or 0) if last else 0
                printed = _run_command(block, command, expected, home=directory.parent)


def _run_command(block: Block, command: str, expected: int, *, home: Path) -> str:
    program, *arguments = _words(command)
    assert program == "sfumato", f"{block.place}: {program} is not run on pages of docs; say why in a comment above"
    with redirect_stdout(io.StringIO()) as stream, redirect_stderr(stream):
        code = main([re.sub("^~(?=/)", str(home), argument) for argument in arguments])
    printed = stream.getvalue()
    assert code == expected, f"{block.place}: exit code {code} of: {command}\n{printed}"
    return printed


def _words(command: str) -> list[str]:
    """Split a command as a shell does: a comment begins with a word, so `table.sqlite#people` has none."""
    words = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=False)
    words.whitespace_split, words.commenters = True, ""
    return list(takewhile(lambda word: not word.startswith("#"), words))


def _run_python(block: Block, space: dict[str, Any]) -> Iterator[Shown]:
    """Run the statements of a block, and compare the values of expressions with the comments below them."""
    lines = block.runnable.splitlines()
    begun = 0
    for number, line in enumerate([*lines, "# "]):
        if not line.startswith("# "):
            continue
        code = ast.parse("\n" * (block.start + begun) + "\n".join(lines[begun:number]), block.page)
        begun = number + 1
        if number == len(lines):
            exec(compile(code, block.page, "exec"), space)
            break
        last = code.body.pop()
        assert isinstance(last, ast.Expr), f"{block.page}, line {block.start + number}: no value for the comment below"
        exec(compile(code, block.page, "exec"), space)
        value = eval(compile(ast.Expression(last.value), block.page, "eval"), space)
        found = f"# {round(value, 3) if isinstance(value, float) else value!r}"
        place = block.start + number
        yield Shown(block, place, place + 1, [line], [found])


def _merge(file: Path, block: Block) -> None:
    """Merge a part of a policy into a file, and see that the result is a policy."""
    policy = _merged(tomllib.loads(file.read_text("utf-8")), tomllib.loads(block.text))
    file.write_text(tomli_w.dumps(policy), "utf-8")
    Policy.load(file).check_complete()


def _merged(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    both = whole.keys() & part.keys()
    tables = {key: _merged(whole[key], part[key]) for key in both if isinstance(whole[key], dict)}
    return {**whole, **part, **tables}


def check_page(page: Path, shown: list[Shown], *, write: bool) -> None:
    """Fail where the page shows something else than what happened; with ``write``, rewrite the page instead."""
    if write:
        rewrite(page, shown)
        return
    for each in shown:
        text = "\n".join(each.found)
        assert not each.differs, f"{each.block.page}, line {each.start + 1} shows something else than:\n{text}"


def rewrite(page: Path, changes: list[Shown]) -> None:
    """Put what was found where the page shows something else."""
    lines = page.read_text("utf-8").splitlines()
    for change in sorted(changes, key=lambda change: change.start, reverse=True):
        if change.differs:
            lines[change.start : change.end] = [f"{change.block.indent}{line}".rstrip() for line in change.found]
    page.write_text("\n".join(lines) + "\n", "utf-8")
