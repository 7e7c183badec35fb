"""Write the sample: `python -m testing.sample DIR`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from testing.sample import everyday, write

write(Path(sys.argv[1]), everyday(int(time.time() * 1000)))
