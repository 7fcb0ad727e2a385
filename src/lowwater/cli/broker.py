"""`lowwater broker`: run one broker until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import resource
import signal
import socket
import sys
from pathlib import Path

import click

from lowwater.cli.http_options import HttpWish, http_options, read_password
from lowwater.config import BrokerConfig
from lowwater.errors import ConfigError

logger = logging.getLogger("lowwater")

DATA_DIR = "lowwater-data"
GC_OBJECTS = 20_000


def _print_settings(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from lowwater.config.reference import help_text

        click.echo(help_text())
        ctx.exit()


@click.command("broker")
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Where everything is kept. Created when missing; one broker at a time.  [default: log.dirs, or lowwater-data]",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.  [default: 9092]")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--config", "config_file", type=click.Path(dir_okay=False), metavar="FILE", help="Settings, as name=value."
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="One setting; wins over the file. Repeatable."
)
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    help="Port of the dashboard, the JSON API and /metrics; 0 takes a free one.  [default: 8080, if that is free]",
)
@click.option("--http-host", default="127.0.0.1", show_default=True, help="Address the dashboard listens on.")
@click.option("--no-http", is_flag=True, help="Serve no dashboard, API and metrics.")
@http_options
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much is logged to stderr.",
)
@click.option(
    "--help-config",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_settings,
    help="Print every setting with its default, and exit.",
)
def command(
    data_dir: str | None,
    port: int | None,
    host: str | None,
    config_file: str | None,
    settings: tuple[str, ...],
    http_port: int | None,
    http_host: str,
    no_http: bool,
    http_password_file: str | None,
    allow_host: tuple[str, ...],
    log_level: str,
) -> None:
    """Run a broker that real Kafka clients can use.

    Prints one line when it accepts connections:

        lowwater broker ready kafka=127.0.0.1:9092 http=http://127.0.0.1:8080 data=lowwater-data

    Stops cleanly on SIGTERM and Ctrl-C. Settings carry Kafka's names; --help-config lists them.
    """
    _log_to_stderr(log_level)
    _raise_handle_limit()
    config = BrokerConfig.load(_read(config_file), _overrides(settings))
    if ignored := config.without_effect():
        logger.info("known, and without effect on a single node: %s", ", ".join(ignored))
    http = None if no_http else HttpWish(http_host, http_port, read_password(http_password_file), allow_host)
    try:
        _run(config, data_dir or config.data_dir() or DATA_DIR, host, port, http)
    except OSError as error:
        raise ConfigError(f"the broker did not stop cleanly: {error}") from error


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # What the format does not show need not be found out: a third of what a line costs, and every rebalance is a line.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _raise_handle_limit() -> None:
    """Connections and log files need many handles; the soft limit is often far below what the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _collect_less_often() -> None:
    """Requests that wait for a sync are thousands of objects, which the collector would take for long-lived garbage.

    Cycles are rare here: what is left after start stays, and what comes later is looked through in large portions.
    """
    gc.freeze()
    gc.set_threshold(GC_OBJECTS, 20, 50)


def _read(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read --config {path}: {error.strerror}") from error


def _overrides(settings: tuple[str, ...]) -> dict[str, str]:
    overrides = {}
    for text in settings:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"--set takes KEY=VALUE, not {text!r}")
        overrides[name.strip()] = value.strip()
    return overrides


def _run(config: BrokerConfig, data_dir: str, host: str | None, port: int | None, http: HttpWish | None) -> None:
    serving = _serve(config, data_dir, host, port, http)
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


def _obstacle(error: OSError, data_dir: str, host: str, port: int) -> str:
    """What is in the way, in the words of the command line."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"--data-dir must be a directory, and {data_dir} cannot be one: there is a file"
    if isinstance(error, socket.gaierror):
        return f"--host {host}: {error.strerror}"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; give another --port, 0 takes a free one"
    return str(error)


async def _serve(
    config: BrokerConfig, data_dir: str, host: str | None, port: int | None, http: HttpWish | None
) -> None:
    from lowwater.server.node import Node, listen_address

    listen = listen_address(config)
    listening = None if http is None else http.bind()
    node = Node(config, data_dir, worker_processes=True)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host, port = host or listen.host, listen.port if port is None else port
    try:
        await node.start(host, port)
    except OSError as error:
        raise ConfigError(f"cannot start: {_obstacle(error, data_dir, host, port)}") from error
    companion = None
    ready = f"lowwater broker ready kafka={node.endpoint.host}:{node.endpoint.port}"
    if http is not None and listening is not None:
        from lowwater.server.companion import Companion

        ready += f" http={http.url(listening)}"
        companion = Companion(listening, http.settings(node.broker.advertised), node.metrics)
        try:
            await companion.start()
        except OSError as error:
            logger.error("the broker goes on without a dashboard, which cannot be started: %s", error)
    _collect_less_often()
    print(f"{ready} data={data_dir}", flush=True)
    await stop.wait()
    logger.info("stopping")
    if companion is not None:
        await companion.stop()
    await node.stop()
    logger.info("stopped")
