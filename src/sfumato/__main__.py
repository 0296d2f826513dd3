"""``python -m sfumato`` is the command ``sfumato``."""

import sys

from sfumato.cli import main

sys.exit(main())
