"""A setting that claims to act is read somewhere; one that does not act is read nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lowwater
from lowwater.config import BROKER_SETTINGS, GROUP_OWN_SETTINGS, TOPIC_SETTINGS, Setting

SOURCES = Path(lowwater.__file__).parent
TABLES = tuple(f"{kind}_settings.py" for kind in ("broker", "group", "log", "topic", "transaction"))
# A name with a value behind it is set, not read.
NAME_READ = re.compile(r'"([a-z0-9.]+)"(?!:)')
# Clients have settings of their own, some of the same name.
CLIENTS = {SOURCES / "client", SOURCES / "spark"}
READ = {
    name
    for path in SOURCES.rglob("*.py")
    if path.name not in TABLES and CLIENTS.isdisjoint(path.parents)
    for name in NAME_READ.findall(path.read_text())
}
READ_THROUGH_TOPICS = {
    synonym.name for setting in TOPIC_SETTINGS if setting.name in READ for synonym in setting.synonyms
}


@pytest.mark.parametrize("setting", BROKER_SETTINGS, ids=lambda setting: setting.name)
def test_a_broker_setting_acts_if_it_says_so(setting: Setting) -> None:
    assert (setting.name in READ | READ_THROUGH_TOPICS) == setting.acts


@pytest.mark.parametrize("setting", TOPIC_SETTINGS, ids=lambda setting: setting.name)
def test_a_topic_setting_acts_if_it_says_so(setting: Setting) -> None:
    assert (setting.name in READ) == setting.acts


@pytest.mark.parametrize("setting", GROUP_OWN_SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_of_groups_acts_if_it_says_so(setting: Setting) -> None:
    assert (setting.name in READ) == setting.acts
