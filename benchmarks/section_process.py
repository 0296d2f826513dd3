"""Measure one section once, and write its tables to a file.

python -m benchmarks.section_process SECTION OPTIONS FILE
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.sections import SECTIONS
from benchmarks.tables import Options


def main(name: str, options_json: str, result: Path) -> None:
    options = Options.from_json(options_json)
    # Keep releases of generated tables out of the user's run record, and those of earlier measurements out of this one.
    with TemporaryDirectory(dir=options.work) as state:
        os.environ["SFUMATO_STATE_DIR"] = state
        tables = {table: asdict(found) for table, found in SECTIONS[name].run(options).items()}
    result.write_text(json.dumps(tables), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
