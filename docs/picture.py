"""Run an example and keep what it prints as a picture: `python docs/picture.py orders` writes docs/orders.svg.

Of `make run` (orders) the picture has the second run, which loads another day and goes on from the checkpoint.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 118
COMMANDS = {"orders": "make run", "first-steps": "make first-steps"}


def main(name: str) -> None:
    printed = _second_run() if name == "orders" else _printed("examples.first_steps")
    console = Console(record=True, width=WIDTH, file=open("/dev/null", "w"))  # noqa: SIM115  only recorded
    console.print(Text.assemble((f"$ {COMMANDS[name]}\n", "bold green"), printed.rstrip()))
    svg = console.export_svg(title="lowwater")
    svg = re.sub(r"@font-face \{.*?\}\n|<!-- Generated.*?-->\n", "", svg, flags=re.DOTALL)
    Path(__file__).with_name(f"{name}.svg").write_text(svg.replace("Fira Code", "DejaVu Sans Mono"))


def _second_run() -> str:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("examples.orders", "--run-dir", f"{folder}/run")
        _printed(*arguments)
        printed = _printed(*arguments)
        return printed.replace(f"{os.path.relpath(folder)}/", "").replace(f"{folder}/", "")


def _printed(*arguments: str) -> str:
    """Both streams, as a terminal would show them."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
