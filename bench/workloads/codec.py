"""The codecs of the wire protocol, in a process of their own: `python -m bench.codec`."""

from __future__ import annotations

import subprocess
import sys

from bench.plan import Run
from bench.subjects import ROOT

TEXT = "messages decoded and encoded a second, beside kio and kafka-python"


def run(plan: Run) -> None:
    print(flush=True)
    subprocess.run([sys.executable, "-m", "bench.codec"], cwd=ROOT, check=True)
