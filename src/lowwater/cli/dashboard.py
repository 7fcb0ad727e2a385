"""`lowwater dashboard`: the dashboard, the JSON API and /metrics for any cluster."""

from __future__ import annotations

from importlib import resources

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.http_options import PORT, http_options, listen, read_password, require_login, url_of
from lowwater.cli.printing import tell
from lowwater.errors import ConfigError

GRAFANA = "grafana.json"


def _print_grafana(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo((resources.files("lowwater.http") / GRAFANA).read_text(encoding="utf-8"))
        ctx.exit()


@click.command("dashboard")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@http_options
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often all groups are looked at; large clusters are looked at less often.",
)
@click.option(
    "--lag-allowed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="RECORDS",
    help="A partition that is not further behind is OK.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in your browser.")
@click.option(
    "--grafana",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_grafana,
    help="Print a Grafana dashboard for /metrics, and exit.",
)
@connection_options
def command(
    connection: Connection,
    port: int,
    host: str,
    http_password_file: str | None,
    allow_host: tuple[str, ...],
    every: float,
    lag_allowed: int,
    open_browser: bool,
) -> None:
    """Watch groups, topics and lag of a cluster in the browser.

    \b
    Of the broker on this machine, or of any cluster:
      lowwater dashboard
      lowwater dashboard -b kafka.example:9093 -X security.protocol=SSL

    The same port serves the JSON API (/openapi.json) and metrics for Prometheus (/metrics). A broker that was started
    with `lowwater broker` has a dashboard already.
    """
    from lowwater.http.serving import Settings, run

    password = read_password(http_password_file)
    require_login(host, password)
    connection.config({})  # says what is wrong with the settings before anything listens
    try:
        listening = listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; --port 0 takes a free one"
        ) from error
    url = url_of(listening)
    settings = Settings(
        connection.client_settings({}),
        host=host,
        password=password,
        allowed_hosts=allow_host,
        interval_ms=round(every * 1000),
        lag_allowed=lag_allowed,
    )
    click.echo(f"lowwater dashboard ready {url}")
    if open_browser and click.launch(url) != 0:
        tell("no browser could be started here")
    run(settings, listening)
