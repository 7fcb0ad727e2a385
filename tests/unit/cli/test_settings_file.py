"""Settings files as kcat and Java programs have them."""

import pytest

from lowwater.cli.settings_file import read_settings_file, usual_file
from lowwater.errors import ConfigError


def read(tmp_path, text):
    file = tmp_path / "client.conf"
    file.write_text(text)
    return read_settings_file(str(file))


def test_lines_are_names_and_values(tmp_path):
    text = "\n# a comment\n  bootstrap.servers = a:1,b:2  \r\nsasl.password= p=w#d \n\n"
    assert read(tmp_path, text) == {"bootstrap.servers": "a:1,b:2", "sasl.password": "p=w#d"}


def test_escapes_of_java_are_taken_back(tmp_path):
    assert read(tmp_path, r"bootstrap.servers=SASL_SSL\://host\:9093") == {"bootstrap.servers": "SASL_SSL://host:9093"}


@pytest.mark.parametrize(
    ("login", "password"),
    [
        ('username="me" password="it\'s me";', "it's me"),
        ("username='me' password='x y';", "x y"),
        ("username=me password=x;", "x"),
        (r'username="me" password="a\"b";', 'a"b'),
    ],
)
def test_the_login_in_java_s_own_words_is_understood(tmp_path, login, password):
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    assert read(tmp_path, f"sasl.jaas.config={module} {login}") == {"sasl.username": "me", "sasl.password": password}


def test_what_only_java_needs_is_left_out(tmp_path):
    assert read(tmp_path, "key.deserializer=org.example.Bytes\nacks=1") == {"acks": "1"}


@pytest.mark.parametrize("line", ["just a name", "=secret"])
def test_a_line_that_cannot_be_read_is_named_but_not_shown(tmp_path, line):
    with pytest.raises(ConfigError, match=r"client\.conf:2: expected name=value") as refused:
        read(tmp_path, f"acks=1\n{line}\n")
    assert line not in str(refused.value)


def test_a_file_that_is_not_text_is_named(tmp_path):
    file = tmp_path / "binary"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="binary: it is not a text file"):
        read_settings_file(str(file))


def test_a_variable_comes_before_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    places = ("THE_CONFIG", "~/.config/the.conf")
    assert usual_file(places) is None
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "the.conf").write_text("")
    assert usual_file(places) == str(tmp_path / ".config" / "the.conf")
    monkeypatch.setenv("THE_CONFIG", "/elsewhere")
    assert usual_file(places) == "/elsewhere"
