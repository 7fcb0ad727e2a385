"""The `lowwater` command."""

from __future__ import annotations

import errno
import io
import os
import sys

import click

from lowwater import __version__
from lowwater.cli.lazy import LazyGroup
from lowwater.cli.printing import tell
from lowwater.errors import LowwaterError

COMMANDS = {
    "broker": ("lowwater.cli.broker", "Run a broker that real Kafka clients can use."),
    "cat": ("lowwater.cli.cat.command", "Read, write and list topics, with the options of kcat."),
    "topics": ("lowwater.cli.topics.command", "List, describe, make, change and delete topics; find offsets."),
    "groups": ("lowwater.cli.groups.command", "Look at groups and their lag; set, undo and copy their offsets."),
    "dashboard": ("lowwater.cli.dashboard", "Watch groups, topics and lag in the browser; JSON API and metrics."),
    "pipeline": ("lowwater.cli.pipeline", "Run pipelines on Spark that stand in a file."),
    "spark": ("lowwater.cli.spark", "Look at what the Spark source has left behind: losses and checkpoints."),
    "completion": ("lowwater.cli.completion", "Print the script that lets your shell complete commands and topics."),
}
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a full or broken disk says. Commands tell themselves what is wrong with the files they were given."""


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="lowwater")
def lowwater() -> None:
    """Everything about offsets in a partitioned log.

    \b
    Start a broker that any Kafka client can use:
      lowwater broker --data-dir ./data

    \b
    Write and read, with the options of kcat:
      echo hello | lowwater cat -b localhost:9092 -t greetings -P
      lowwater cat -b localhost:9092 -t greetings -C -o -1h -e

    \b
    Look around, in this cluster or in any other:
      lowwater topics list
      lowwater topics offsets greetings --at -1h
      lowwater groups lag
      lowwater topics list -b kafka.example:9093 -X security.protocol=SSL

    Every command has a --help of its own. A failure exits with 1, a wrong command line with 2
    (with 1 where it is that of `cat`, as with kcat).
    """


def main() -> None:
    """Exit codes: 0 done, 1 it failed, 2 it was asked for in a wrong way, 130 Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that does not know a sign shows its number
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run()
        if sys.stdout is not None:  # it may have been closed by whoever started this
            sys.stdout.flush()
        sys.exit(code)
    except BrokenPipeError:  # whoever read this has seen enough
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:  # that of a file is another matter
            raise
        _drop_output()
        tell(f"cannot write the output: {os.strerror(error.errno)}")
        sys.exit(1)


def _run() -> int:
    """The exit code, with what is wrong told."""
    try:
        # A number when a command ended itself by ctx.exit().
        code = lowwater(prog_name="lowwater", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LowwaterError as error:
        tell(error)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return 130
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        tell(end.code)  # as Python does: a step of a pipeline may end in this way
        return 1
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """What is still buffered must not be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
