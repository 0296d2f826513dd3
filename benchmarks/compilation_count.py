"""Run the ``sfumato`` command and write to a file how many kernels the process had to compile.

python -m benchmarks.compilation_count COUNT_FILE anonymize ...
"""

from __future__ import annotations

import sys
from pathlib import Path

from sfumato.cli import main
from sfumato.kernels.decorator import on_compilation


def run(count_file: Path, arguments: list[str]) -> int:
    compiled = 0

    def count() -> None:
        nonlocal compiled
        compiled += 1

    with on_compilation(count):
        code = main(arguments)
    count_file.write_text(str(compiled))
    return code


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
