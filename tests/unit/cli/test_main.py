"""How the command ends."""

from __future__ import annotations

import pytest

from lowwater.cli import main


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (SystemExit(), 0, ""),
        (SystemExit(3), 3, ""),
        (SystemExit("no customers"), 1, "lowwater: no customers\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_command_that_ends_itself_has_its_code_and_its_say(
    end: BaseException, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(**_: object) -> None:
        raise end

    monkeypatch.setattr(main, "lowwater", ends)
    with pytest.raises(SystemExit) as exited:
        main.main()
    assert (exited.value.code, capsys.readouterr().err) == (code, told)


def test_a_disk_that_is_full_for_a_file_is_not_told_as_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> None:
        raise OSError(28, "No space left on device", "/data/00000.log")

    monkeypatch.setattr(main, "lowwater", fails)
    with pytest.raises(OSError, match=r"00000\.log"):
        main.main()
