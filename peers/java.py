"""Java programs of the peers: the class path, the command line, and compiling a source of our own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from peers import places
from peers.places import stamp_of

# Client programs live for seconds: the quick compiler and the small collector start faster than the server ones.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")

QUIET_LOG4J = """\
status = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c: %m%n
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
"""


def java() -> str:
    found = places.find_java()
    if found is None:
        raise FileNotFoundError(f"no Java runtime: {places.BRING}")
    return str(found)


def class_path(*more: Path, libs: Sequence[Path] = ()) -> str:
    """Kafka's jars and those of `libs`, and before them our own compiled classes."""
    return os.pathsep.join([*map(str, more), *(str(folder / "*") for folder in (places.KAFKA_LIBS, *libs))])


def command(main_class: str, *args: str, classes: Path | None = None, libs: Sequence[Path] = ()) -> list[str]:
    """The command line that runs `main_class` of Kafka's jars, of those of `libs`, or of `classes`."""
    path = class_path(*([classes] if classes else []), libs=libs)
    log = f"-Dlog4j2.configurationFile={log4j_file()}"
    return [java(), *SHORT_LIVED, log, "-cp", path, main_class, *args]


def log4j_file(level: str = "error") -> Path:
    """A logging set-up that writes to standard error only, so that standard output stays the program's."""
    path = places.PEERS / f"log4j2-{level}.properties"
    if not path.exists():
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(QUIET_LOG4J.replace("{level}", level))
        scratch.replace(path)
    return path


def compiled(source: Path, libs: Sequence[Path] = ()) -> Path:
    """The folder with the classes of one Java source of ours; compiled anew only when the source changed."""
    folder = places.JAVA_CLASSES / f"{source.stem}-{stamp_of(source)[:12]}"
    if folder.exists():
        return folder
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    jars = os.pathsep.join(str(jar) for folder in (places.KAFKA_LIBS, *libs) for jar in sorted(folder.glob("*.jar")))
    compiler = [java(), *SHORT_LIVED, "-cp", class_path(), "org.eclipse.jdt.internal.compiler.batch.Main"]
    rules = ["-source", "17", "-target", "17", "-proc:none", "-nowarn"]
    arguments = [*rules, "-cp", jars, "-d", str(scratch), str(source)]
    done = subprocess.run([*compiler, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stdout}{done.stderr}")
    try:
        scratch.rename(folder)
    except OSError:  # Another test process was faster: its classes are the same.
        if not folder.exists():
            raise
    return folder
