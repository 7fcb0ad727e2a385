"""`lowwater cat`: the options, which are kcat's, and what is done with them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeVar

import click

from lowwater.cli.cat.asked import Mode, looks_of, questions_of, sending_of, where_of
from lowwater.cli.cat.options import MODE, kcat_options
from lowwater.cli.cat.talk import Talk, tell
from lowwater.cli.connecting import PATIENCE, Connection, connection_of
from lowwater.cli.settings_file import KCATS
from lowwater.errors import LowwaterError

NO_FILE = ("-", "none")
CREATION_MS = "10000"
# kcat's own defaults where they differ from those of the client: keys go to the partitions that librdkafka takes, and a
# start outside the log is moved to its end.
DEFAULTS = {"auto.offset.reset": "latest", "partitioner": "consistent_random", "client.id": "lowwater-cat"}


T = TypeVar("T")


class CatUsageError(click.UsageError):
    """kcat ends with 1 for whatever is wrong, also with the options."""

    exit_code = 1


class CatCommand(click.Command):
    """Errors are told as kcat tells them."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        return _as_kcat(lambda: super(CatCommand, self).make_context(*args, **extra))

    def invoke(self, ctx: click.Context) -> Any:
        return _as_kcat(lambda: super(CatCommand, self).invoke(ctx))


def _as_kcat(work: Callable[[], T]) -> T:
    try:
        return work()
    except click.UsageError as error:
        raise CatUsageError(error.format_message(), error.ctx) from None
    except LowwaterError as error:
        tell(f"% ERROR: {error}")
        sys.exit(1)


@click.command("cat", cls=CatCommand, context_settings={"help_option_names": ["-h", "--help"]})
@kcat_options
@click.pass_context
def command(ctx: click.Context, /, names: tuple[str, ...], **options: Any) -> None:
    """Read, write and list topics: kcat's command line on any Kafka cluster.

    \b
      lowwater cat -L
      lowwater cat -t orders -o -1h -e
      lowwater cat -t orders -f '%T %k %s\\n' -o stored -X group.id=billing
      lowwater cat -G billing orders payments
      echo '42:hello' | lowwater cat -P -t orders -K:
    """
    if "list" in options["properties"] or "help" in options["properties"]:
        sys.stdout.buffer.write(_settings_listed())
        return
    talk = Talk(0 if options["is_quiet"] else 1 + options["verbosity"], options["goes_on"])
    mode = ctx.meta.get(MODE) or _guessed(talk)
    if names and mode not in (Mode.PRODUCE, Mode.GROUP):
        raise click.UsageError("file/topic list only allowed in producer(-P)/kafkaconsumer(-G) mode")
    if mode in (Mode.CONSUME, Mode.PRODUCE) and not options["topics"]:
        raise click.UsageError("-t <topic> missing")
    connection = _connection(options, mode, talk)
    if "dump" in options["properties"]:
        sys.stdout.buffer.write(_settings_dumped(connection, _defaults(mode, options["timeout_s"])))
        return
    try:
        with _ended_by_signals():
            _run(mode, connection, _defaults(mode, options["timeout_s"]), names, options, talk)
    except KeyboardInterrupt:
        # It may come between the making of a coroutine and its first step: that it never ran is no news then.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        sys.stdout.flush()


def _guessed(talk: Talk) -> Mode:
    mode = Mode.CONSUME if sys.stdin.isatty() else Mode.PRODUCE
    talk.say(f"Auto-selecting {'Consumer' if mode is Mode.CONSUME else 'Producer'} mode (use -P or -C to override)")
    return mode


def _connection(options: Mapping[str, Any], mode: Mode, talk: Talk) -> Connection:
    file = options["settings_file"]
    properties = [text for text in options["properties"] if text != "dump"]
    if options["codec"] is not None:
        properties.append(f"compression.type={options['codec']}")
    if mode is Mode.GROUP:
        properties.append(f"group.id={options['group']}")
    usual = () if file in NO_FILE else KCATS
    connection = connection_of(options["bootstrap"], properties, None if file in NO_FILE else file, usual)
    if file is not None and file not in NO_FILE:
        talk.say(f"Reading configuration from file {file}")
    return connection


def _defaults(mode: Mode, timeout_s: int) -> dict[str, str]:
    defaults = PATIENCE | DEFAULTS | {"default.api.timeout.ms": str(timeout_s * 1000)}
    if mode is Mode.PRODUCE:
        defaults |= {"allow.auto.create.topics": "true", "topic.metadata.propagation.max.ms": CREATION_MS}
    return defaults


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM is Ctrl-C: what was printed is committed, a transaction is aborted, and that is all."""

    def interrupt(_: int, __: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(
    mode: Mode,
    connection: Connection,
    defaults: Mapping[str, str],
    names: tuple[str, ...],
    options: dict[str, Any],
    talk: Talk,
) -> None:
    match mode:
        case Mode.LIST:
            from lowwater.cli.cat.listing import list_metadata

            with connection.open(defaults) as connected:
                _write(list_metadata(connected, options["topics"], as_json=options["json"]))
        case Mode.QUERY:
            from lowwater.cli.cat.listing import query_offsets

            questions = questions_of(options["topics"], options["zone"])
            with connection.open(defaults) as connected:
                text, is_whole = query_offsets(connected, questions, as_json=options["json"])
            _write(text)
            if not is_whole:
                sys.exit(1)
        case Mode.CONSUME:
            from lowwater.cli.cat.consuming import consume

            where, looks = where_of(options, options["topics"]), looks_of(options)
            if where.order is None:
                consume(connection, defaults, options["topics"], where, looks, talk)
                return
            from lowwater.cli.cat.ordering import consume_in_order

            consume_in_order(connection, defaults, options["topics"], where, looks, talk)
        case Mode.GROUP:
            from lowwater.cli.cat.membership import consume_as_member

            topics = (*options["topics"], *names)
            where, looks = where_of(options, topics), looks_of(options)
            if where.order is not None:
                raise click.UsageError("--order goes with -C")
            consume_as_member(connection, defaults, topics, where, looks, talk)
        case Mode.PRODUCE:
            from lowwater.cli.cat.producing import produce

            if not produce(connection, defaults, options["topics"][-1], names, sending_of(options), talk):
                sys.exit(1)


def _write(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def _settings_listed() -> bytes:
    from lowwater.client.config import CLIENT_SETTINGS

    width = max(len(setting.name) for setting in CLIENT_SETTINGS)
    lines = [f"{setting.name:{width}}  {setting.help}  [{setting.default}]\n" for setting in CLIENT_SETTINGS]
    return "".join(lines).encode()


def _settings_dumped(connection: Connection, defaults: Mapping[str, str]) -> bytes:
    from lowwater.client.config import CLIENT_SETTINGS
    from lowwater.config.setting import Kind

    config = connection.config(defaults)
    shown = {each.name: config.value(each.name) for each in CLIENT_SETTINGS if each.kind is not Kind.PASSWORD}
    return "".join(f"{name} = {_text(value)}\n" for name, value in shown.items() if value is not None).encode()


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
