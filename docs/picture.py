"""Run `make run`'s example and keep what it prints as docs/first-steps.svg, the picture in the README."""

import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 104

printed = subprocess.run(
    [sys.executable, "-m", "examples.first_steps"], capture_output=True, text=True, check=True
).stdout
console = Console(record=True, width=WIDTH, file=open("/dev/null", "w"))  # noqa: SIM115  only recorded
console.print(Text.assemble(("$ make run\n", "bold green"), printed.rstrip()))
svg = re.sub(r"@font-face \{.*?\}\n|<!-- Generated.*?-->\n", "", console.export_svg(title="lowwater"), flags=re.DOTALL)
Path(__file__).with_name("first-steps.svg").write_text(svg.replace("Fira Code", "DejaVu Sans Mono"))
