"""What `specchat rewrite` does besides: line ends, copies, commands behind a write, formats, recipes, going on."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from specchat import cli
from specchat.rewrite.source import joined
from tests.specchat.rewrite.scripted import COPY, edited
from tests.specchat.rewrite.shell import LINES, TEXT, Shell, put, rows, without_styles

CRLF = TEXT.replace("\n", "\r\n")


class TestLineEnds:
    @pytest.mark.parametrize(
        ("before", "flags", "after"),
        [
            (CRLF, ["--eol", "lf"], TEXT),
            (TEXT, ["--eol", "crlf"], CRLF),
            (CRLF, ["--eol", "keep"], CRLF),
            (TEXT[:-1], ["--final-newline", "yes"], TEXT),
            (CRLF[:-2], ["--final-newline", "yes"], CRLF),
            (TEXT, ["--final-newline", "no"], TEXT[:-1]),
            (CRLF[:-2], ["--eol", "lf", "--final-newline", "yes"], TEXT),
        ],
    )
    def test_they_are_a_change_although_the_model_makes_none(
        self, shell: Shell, before: str, flags: list[str], after: str
    ) -> None:
        path = put("a.txt", before)
        shell.model.script = COPY

        checked = shell("rewrite", "a.txt", "do it", "--check", *flags)
        done = shell("rewrite", "a.txt", "do it", "-w", *flags)

        assert path.read_bytes() == after.encode()
        assert checked.code == (1 if before != after else 0)
        assert done.code == 0
        assert ("written" in done.err) == (before != after)

    def test_they_come_on_top_of_what_the_model_changes_and_are_told_apart(self, shell: Shell) -> None:
        path = put("a.txt", CRLF)

        line, _ = shell("rewrite", "a.txt", "do it", "-w", "--eol", "lf", "--final-newline", "no", "--json").lines

        assert path.read_text() == rows(TEXT)[:-1]
        assert (line["hunks"], line["changed_lines"]) == (2, 2)
        assert (line["line_ends"], line["final_newline"]) == (60, "removed")
        assert "60 line ends become LF and the final newline is removed" in line["message"]

    def test_the_patch_holds_them(self, shell: Shell) -> None:
        put("a.txt", "one\r\ntwo\r\n")
        shell.model.script = COPY

        done = shell("rewrite", "a.txt", "do it", "-D", "--eol", "lf")

        assert done.out.endswith(b"-one\r\n-two\r\n+one\n+two\n")
        assert "2 line ends become LF" in done.err

    def test_a_review_asks_about_them_where_nothing_else_is_accepted(self, shell: Shell) -> None:
        path = put("a.txt", CRLF)

        declined = shell("rewrite", "a.txt", "do it", "--eol", "lf", stdin=b"n\nn\nn\n", terminal=True)
        assert declined.code == 6
        assert path.read_bytes() == CRLF.encode()

        agreed = shell("rewrite", "a.txt", "do it", "--eol", "lf", stdin=b"n\nn\ny\n", terminal=True)
        assert agreed.code == 0
        assert path.read_bytes() == TEXT.encode()

    def test_what_is_refused_stays_as_it_is(self, shell: Shell) -> None:
        path = put("a.txt", CRLF)
        shell.model.script = lambda text, closing: closing

        assert shell("rewrite", "a.txt", "do it", "-w", "--eol", "lf", "--force").code == 5
        assert path.read_bytes() == CRLF.encode()


class TestBackup:
    def test_the_old_file_stands_beside_with_its_mode(self, shell: Shell) -> None:
        path = put("a.sh")
        path.chmod(0o751)

        done = shell("rewrite", "a.sh", "do it", "-w", "--backup-suffix", ".orig")

        assert done.code == 0
        assert Path("a.sh.orig").read_text() == TEXT
        assert stat.S_IMODE(Path("a.sh.orig").stat().st_mode) == 0o751
        assert path.read_text() == rows(TEXT)
        assert "the old one is a.sh.orig" in done.err
        assert shell("undo").code == 0

    def test_it_may_stand_instead_of_the_undo_store(self, shell: Shell) -> None:
        put("a.txt")

        assert shell("rewrite", "a.txt", "do it", "-w", "--backup-suffix", "~", "--no-backup").code == 0
        assert Path("a.txt~").read_text() == TEXT
        assert shell("undo", "--list").out == b""

    @pytest.mark.parametrize("other", ["a file", "a folder", "a link to nothing"])
    def test_another_file_of_that_name_is_not_replaced(self, shell: Shell, other: str) -> None:
        path = put("a.txt")
        beside = Path("a.txt.orig")
        if other == "a file":
            put("a.txt.orig", "mine\n")
        elif other == "a folder":
            beside.mkdir()
        else:
            beside.symlink_to("../elsewhere.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--backup-suffix", ".orig")

        assert done.code == 5
        assert path.read_text() == TEXT
        assert not Path("../elsewhere.txt").exists()
        assert beside.is_dir() or beside.is_symlink() or beside.read_text() == "mine\n"
        assert shell.model.prompts == []  # which is found out before the model works

    def test_the_same_copy_again_is_no_trouble(self, shell: Shell) -> None:
        put("a.txt")
        put("a.txt.orig")

        assert shell("rewrite", "a.txt", "do it", "-w", "--backup-suffix", ".orig").code == 0

    def test_one_that_appears_meanwhile_is_not_replaced_and_nothing_is_left_behind(self, shell: Shell) -> None:
        path = put("a.txt")

        def appear(written: int) -> None:
            put("a.txt.orig", "mine\n")

        shell.model.before_forward = appear

        assert shell("rewrite", "a.txt", "do it", "-w", "--backup-suffix", ".orig").code == 5
        assert sorted(os.listdir()) == ["a.txt", "a.txt.orig"]
        assert (path.read_text(), Path("a.txt.orig").read_text()) == (TEXT, "mine\n")

    def test_a_write_that_fails_leaves_no_copy(self, shell: Shell) -> None:
        path = put("a.txt")

        def edit(written: int) -> None:
            path.write_text("mine\n")

        shell.model.before_forward = edit

        assert shell("rewrite", "a.txt", "do it", "-w", "--backup-suffix", ".orig").code == 7
        assert os.listdir() == ["a.txt"]

    def test_of_a_link_it_stands_beside_the_link(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "a.txt").write_text(TEXT)
        Path("link.txt").symlink_to(tmp_path / "elsewhere" / "a.txt")

        assert shell("rewrite", "link.txt", "do it", "-w", "--backup-suffix", ".orig").code == 0
        assert os.listdir(tmp_path / "elsewhere") == ["a.txt"]
        assert Path("link.txt.orig").read_text() == TEXT

    @pytest.mark.parametrize("suffix", ["", "/x", "/../x", "..", "\\x", " ", "\x1b[31m", "a\nb", "x" * 40, ".part"])
    def test_what_is_no_ending_of_a_name_is_wrong_usage(self, shell: Shell, suffix: str) -> None:
        put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--backup-suffix", suffix)

        assert done.code == 2
        assert os.listdir() == ["a.txt"]
        assert "\x1b" not in done.err


FAILS = [sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write('formatted\\n'); sys.exit(3)"]
COMMAND = " ".join(f"'{word}'" if " " in word else word for word in [*FAILS[:2], FAILS[2].replace("'", '"')]) + " {}"


class TestAfterFail:
    def test_undo_takes_back_the_change_and_what_the_command_did(self, shell: Shell) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--after", COMMAND, "--after-fail", "undo")

        assert done.code == 5
        assert path.read_text() == TEXT
        assert "ended with 3, so it is as it was before" in done.err
        assert shell("undo", done.err.split("`specchat undo ")[1].split("`")[0]).code == 0
        assert path.read_text() == rows(TEXT) + "formatted\n"  # nothing is lost

    def test_keep_leaves_both(self, shell: Shell) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--after", COMMAND, "--after-fail", "keep")

        assert done.code == 8
        assert path.read_text() == rows(TEXT) + "formatted\n"

    @pytest.mark.parametrize(("answer", "code", "rest"), [(b"y\n", 5, TEXT), (b"\n", 8, rows(TEXT))])
    def test_on_a_terminal_it_is_asked(self, shell: Shell, answer: bytes, code: int, rest: str) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "--after", "false", stdin=b"a\n" + answer, terminal=True)

        assert done.code == code
        assert "take the change back?" in done.err
        assert path.read_text() == rest

    def test_json_and_the_summary_tell_it(self, shell: Shell) -> None:
        for name in ("a.txt", "b.txt"):
            put(name)

        one, other, summary = shell(
            "rewrite", "a.txt", "b.txt", "do it", "-w", "--json", "--after", "false", "--after-fail", "undo"
        ).lines

        assert (one["status"], one["exit_code"], one["undo_id"]) == ("undone", 5, None)
        assert (summary["undone"], summary["exit_code"]) == (2, 8)
        assert other["path"] == "b.txt"

    def test_without_an_undo_store_nothing_is_left_in_it(self, shell: Shell) -> None:
        path = put("a.txt")

        shell("rewrite", "a.txt", "do it", "-w", "--after", "false", "--after-fail", "undo", "--no-backup")

        assert path.read_text() == TEXT
        assert shell("undo", "--list").out == b""

    def test_ctrl_c_in_the_command_ends_the_run_and_says_how_to_take_it_back(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a.txt", "b.txt"):
            put(name)

        def interrupt(*args: object, **more: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("specchat.rewrite.after.subprocess.run", interrupt)

        done = shell("rewrite", "a.txt", "b.txt", "do it", "-w", "--after", "sleep 100")

        assert done.code == 130
        assert "sleep was interrupted; `specchat undo" in done.err
        assert Path("b.txt").read_text() == TEXT


class TestFormat:
    def test_side_by_side_fits_the_width_and_keeps_wide_characters_whole(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "70")
        put("a.txt", TEXT + "\t世界" * 30 + " end\n")
        shell.model.script = edited(lambda text: rows(text).replace("end", "END"))

        done = shell("rewrite", "a.txt", "do it", "-D", "--format", "side")

        from rich.cells import cell_len

        lines = done.out.decode().splitlines()
        assert max(map(cell_len, lines)) in (69, 70)
        assert {cell_len(line.partition(" │ ")[0]) for line in lines if " │ " in line} == {33}
        assert any("- 21 line 20 of" in line and "│ + row 20 of" in line for line in lines)
        new = [line.partition(" │ ")[2] for line in lines]
        assert "".join(line.strip() for line in new if "世" in line or "界" in line).count("世") == 30

    def test_side_by_side_in_the_review(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "--format", "side", stdin=b"a\n", terminal=True)

        assert "│ + row 20 of" in without_styles(done.out)
        assert path.read_text() == rows(TEXT)

    def test_a_narrow_terminal_gets_unified_hunks(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        put("a.txt")

        assert "│" not in shell("rewrite", "a.txt", "do it", "-D", "--format", "side").out.decode()

    def test_json_has_old_and_new_lines_and_flags(self, shell: Shell) -> None:
        put("a.txt", TEXT + "TIMEOUT = 3000\n")
        shell.model.script = edited(lambda text: text.replace("3000", "30000").replace(f"{LINES[20]}\n", ""))

        done = shell("rewrite", "a.txt", "do it", "--format", "json", terminal=True)

        (found,) = done.lines
        assert found["path"] == "a.txt"
        removed, changed = found["changes"]
        assert (removed["start"], removed["end"], removed["old"], removed["new"]) == (21, 21, [LINES[20]], [])
        assert (changed["old"], changed["new"]) == (["TIMEOUT = 3000"], ["TIMEOUT = 30000"])
        assert [flag["kind"] for flag in changed["flags"]] == ["quiet"]

    def test_json_lines_can_hold_the_changes_of_a_write(self, shell: Shell) -> None:
        put("a.txt")

        line, _ = shell("rewrite", "a.txt", "do it", "-w", "--json", "--format", "json").lines

        assert [change["start"] for change in line["changes"]] == [21, 41]
        assert line["changes"][1]["old"] == []

    def test_json_steers_no_terminal(self, shell: Shell) -> None:
        put("a.txt", TEXT + "\x9b31m end\n")
        shell.model.script = edited(lambda text: text.replace("end", "END"))

        done = shell("rewrite", "a.txt", "do it", "--format", "json", terminal=True)

        assert "\x9b" not in done.out.decode()
        assert json.loads(done.out)["changes"][0]["new"] == ["\x9b31m END"]


class TestRecipes:
    def own(self, name: str, text: str) -> None:
        folder = Path(os.environ["SPECCHAT_CONFIG"]).parent / "recipes"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text)

    def test_its_instruction_is_asked_with_its_variables(self, shell: Shell) -> None:
        put("a.txt")

        assert shell("rewrite", "a.txt", "-r", "proofread", "-p", "tone=warm", "--check").code == 1
        assert "The tone should be warm." in shell.model.prompts[0]

    def test_words_besides_are_added(self, shell: Shell) -> None:
        put("a.txt")

        shell("rewrite", "-r", "british", "a.txt", "be quick about it", "--check")

        assert shell.model.prompts[0].startswith("Use British spelling")
        assert "\n\nbe quick about it" in shell.model.prompts[0]

    def test_its_guard_rails_hold(self, shell: Shell) -> None:
        path = put("a.txt")
        shell.model.script = edited(lambda text: text.replace("line 20 of", "line 21 of"))

        assert shell("rewrite", "a.txt", "-r", "proofread", "-O").code == 5
        assert path.read_text() == TEXT

    def test_the_undo_list_has_the_filled_instruction(self, shell: Shell) -> None:
        put("a.txt")
        self.own("mine", "instruction = 'make it {how}'\n")

        assert shell("rewrite", "a.txt", "-r", "mine", "-p", "how=good", "-w").code == 0
        assert "make it good" in shell("undo", "--list").out.decode()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["-r", "profread"], 'did you mean "proofread"'),
            (["-r", "../recipes/x"], "no recipe is named ../recipes/x"),
            (["-r", "translate"], "needs -p to=..."),
            (["-r", "british", "-p", "tone=x"], "has no variable tone"),
            (["-r", "british", "-p", "tone"], "NAME=VALUE"),
            (["do it", "-p", "tone=x"], "name the recipe with -r"),
            (["-r", "broken"], "broken.toml, line 1: instruction"),
        ],
    )
    def test_slips_are_one_line_and_exit_2(self, shell: Shell, words: list[str], said: str) -> None:
        put("a.txt")
        self.own("broken", "instruction = 1\n")

        done = shell("rewrite", "a.txt", *words)

        assert done.code == 2
        assert said in done.err
        assert done.err.count("\n") == 1
        assert shell.loaded == 0

    def test_a_file_that_is_missing_is_not_taken_for_an_instruction(self, shell: Shell) -> None:
        put("a.txt")

        done = shell("rewrite", "a.txt", "gone.txt", "-r", "british", "--json", "--check")

        assert [line.get("path") for line in done.lines[:2]] == ["a.txt", "gone.txt"]
        assert done.code == 8

    def test_they_are_listed_with_their_variables(self, shell: Shell) -> None:
        self.own(
            "mine",
            "description = '\x1b[31mhere'\ninstruction = '{x} {y}'\nvariables = { y = 'a b' }\n".replace(
                "\x1b", "\\u001b"
            ).replace("'\\u001b[31mhere'", '"\\u001b[31mhere"'),
        )
        self.own("broken", "instruction = 1\n")

        done = shell("rewrite", "--recipes")

        assert done.code == 0
        assert "mine        \u241b[31mhere; -p x=... -p y='a b'\n" in done.out.decode()
        assert "translate" in done.out.decode()
        assert "broken.toml" in done.err
        assert {line["name"] for line in shell("rewrite", "--recipes", "--json").lines} >= {"mine", "rename"}


class TestContinue:
    def cut_off(self, shell: Shell, *words: str) -> str:
        done = shell("--max-tokens", "1500", "rewrite", "a.txt", "do it", "-w", *words)
        assert done.code == 5
        assert "`specchat rewrite a.txt --continue` goes on" in done.err
        return done.err

    def test_it_goes_on_without_being_told_what_to_do(self, shell: Shell) -> None:
        path = put("a.txt")
        self.cut_off(shell)

        done = shell("rewrite", "a.txt", "--continue", "-w")

        assert done.code == 0
        assert path.read_text() == rows(TEXT)
        assert "do it" in shell("undo", "--list").out.decode()
        assert shell("rewrite", "a.txt", "--continue", "-w").code == 3  # it is done

    def test_where_nothing_was_cut_off_no_model_is_loaded(self, shell: Shell) -> None:
        put("a.txt")

        done = shell("rewrite", "a.txt", "--continue", "-w")

        assert (done.code, shell.loaded) == (3, 0)
        assert done.err == "no rewrite of a.txt was cut off, so there is none to go on with\n"

    def test_what_was_written_is_not_written_again_and_the_figures_are_those_of_both_runs(self, shell: Shell) -> None:
        put("a.txt")
        first, _ = shell("--max-tokens", "1500", "rewrite", "a.txt", "do it", "-w", "--json").lines

        line, _ = shell("rewrite", "a.txt", "do it", "--continue", "-w", "--json").lines

        before, both = first["speculation"], line["speculation"]
        assert before["output_tokens"] == 1500
        assert len(rows(TEXT)) < both["output_tokens"] < len(rows(TEXT)) + 200  # lines that were not whole come again
        assert both["steps"] > before["steps"]
        assert both["seconds"]["decode"] > before["seconds"]["decode"]
        assert both["seconds"]["prefill"] > before["seconds"]["prefill"]

    @pytest.mark.parametrize(
        ("rail", "said"),
        [
            (["--keep", "numbers"], "numbers: 40 is gone"),
            (["--protect", "line 40 of"], "line 40 of is protected"),
            (["--max-change", "1"], "% of the lines change"),
            (["--strict"], "quiet"),
        ],
        ids=lambda each: str(each[0]),
    )
    def test_what_a_rewrite_must_not_do_it_must_not_do_when_it_goes_on(
        self, shell: Shell, rail: list[str], said: str
    ) -> None:
        path = put("a.txt")
        shell.model.script = edited(lambda text: text.replace("line 40 of", "line 41 of"))
        self.cut_off(shell, *rail)

        done = shell("rewrite", "a.txt", "--continue", "--diff")

        assert done.code == 5
        assert said in done.err
        assert path.read_text() == TEXT

    def test_a_guard_rail_that_is_given_later_holds_beside_the_earlier_ones(self, shell: Shell) -> None:
        put("a.txt")
        shell.model.script = edited(rows)
        self.cut_off(shell, "--protect", "line 3 of", "--max-change", "1")

        done = shell("rewrite", "a.txt", "--continue", "-w", "--max-change", "50", "--protect", "line 20 of")

        assert "line 20 of is protected" in done.err
        assert "of the lines change" not in done.err

    def test_how_it_is_written_need_not_be_said_again(self, shell: Shell) -> None:
        path = put("a.txt")
        self.cut_off(shell, "--eol", "crlf", "--final-newline", "no", "--backup-suffix", ".orig", "--no-backup")

        done = shell("rewrite", "a.txt", "--continue", "-w")

        assert done.code == 0
        assert path.read_bytes() == rows(TEXT).replace("\n", "\r\n").removesuffix("\r\n").encode()
        assert Path("a.txt.orig").read_text() == TEXT
        assert shell("undo").code == 3

    def test_the_terms_of_one_file_are_not_those_of_the_next(self, shell: Shell) -> None:
        put("a.txt")
        other = put("b.txt")
        self.cut_off(shell, "--protect", "line 20 of")

        done = shell("rewrite", "a.txt", "b.txt", "do it", "--continue", "-w")

        assert done.code == 8
        assert "line 20 of is protected" in done.err
        assert other.read_text() == rows(TEXT)

    def test_what_an_older_version_kept_can_be_gone_on_from(self, shell: Shell) -> None:
        path = put("a.txt")
        self.cut_off(shell)
        (kept,) = (Path(os.environ["SPECCHAT_STATE_DIR"]) / "unfinished").iterdir()
        found = json.loads(kept.read_bytes())
        del found["terms"], found["took"]
        kept.write_text(json.dumps({**found, "version": 1}))

        assert shell("rewrite", "a.txt", "--continue", "-w").code == 0
        assert path.read_text() == rows(TEXT)

    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
    def test_ctrl_c_and_being_asked_to_end_can_be_gone_on_from(self, shell: Shell, name: str) -> None:
        path, asked = put("a.txt"), getattr(signal, name)
        before = signal.getsignal(asked)

        def interrupt(written: int) -> None:
            if written > 1500:
                signal.raise_signal(asked)

        shell.model.before_forward = interrupt
        done = shell("rewrite", "a.txt", "do it", "-w")
        assert done.code == 130
        assert signal.getsignal(asked) is before
        assert "--continue` goes on" in done.err
        shell.model.before_forward = lambda written: None

        assert shell("rewrite", "a.txt", "--continue", "-w").code == 0
        assert path.read_text() == rows(TEXT)

    def test_nothing_is_kept_where_no_line_was_done(self, shell: Shell) -> None:
        put("a.txt")

        done = shell("--max-tokens", "3", "rewrite", "a.txt", "do it", "-w")

        assert done.code == 5
        assert "--continue" not in done.err
        assert shell("rewrite", "a.txt", "--continue").code == 3

    def test_a_power_cut_loses_little(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is kept between two steps is enough: a killed process comes to no end of its own."""
        path = put("a.txt")
        monkeypatch.setattr("specchat.rewrite.unfinished.EVERY_S", 0.0)

        class Killed(BaseException):
            pass

        def kill(written: int) -> None:
            if written > 1500:
                raise Killed

        shell.model.before_forward = kill
        with pytest.raises(Killed):
            shell("rewrite", "a.txt", "do it", "-w")
        shell.model.before_forward = lambda written: None

        assert shell("rewrite", "a.txt", "--continue", "-w").code == 0
        assert path.read_text() == rows(TEXT)

    def test_a_file_that_changed_since_is_refused(self, shell: Shell) -> None:
        path = put("a.txt")
        self.cut_off(shell)
        path.write_text(TEXT + "more\n")

        done = shell("rewrite", "a.txt", "--continue", "-w")

        assert done.code == 7
        assert path.read_text() == TEXT + "more\n"

    def test_another_request_is_wrong_usage(self, shell: Shell) -> None:
        put("a.txt")
        self.cut_off(shell)

        assert shell("rewrite", "a.txt", "do something else", "--continue").code == 2

    def test_only_the_user_may_read_what_is_kept(self, shell: Shell) -> None:
        put("a.txt")
        self.cut_off(shell)

        (kept,) = (Path(os.environ["SPECCHAT_STATE_DIR"]) / "unfinished").iterdir()

        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
        assert "a.txt" not in kept.name

    def test_what_is_broken_is_as_if_it_were_not_there(self, shell: Shell) -> None:
        put("a.txt")
        self.cut_off(shell)
        (kept,) = (Path(os.environ["SPECCHAT_STATE_DIR"]) / "unfinished").iterdir()

        for broken in (b"", b"{", b"[]", b"\xff", b"[" * 5000, kept.read_bytes().replace(b"60", b"-1")):
            kept.write_bytes(broken)
            done = shell("rewrite", "a.txt", "--continue")
            assert done.code == 3

    def test_lines_and_encoding_need_not_be_said_again(self, shell: Shell) -> None:
        text = TEXT.replace("something", "é")
        path = put("a.txt", text.encode("cp850"))
        shell.model.script = edited(lambda text: text.replace("line 5", "LINE 5"))
        self.cut_off(shell, "--lines", "11:58", "--encoding", "cp850", "--force")

        assert shell("rewrite", "a.txt", "--continue", "-w", "--force").code == 0
        lines = text.splitlines()
        assert path.read_bytes().decode("cp850") == joined(
            line.replace("line 5", "LINE 5") if 10 <= i < 58 else line for i, line in enumerate(lines)
        )

    def test_standard_input_has_nothing_to_go_on_with(self, shell: Shell) -> None:
        assert shell("rewrite", "-", "do it", "--continue", stdin=TEXT.encode()).code == 2


def test_what_was_left_out_of_the_reply_is_told(shell: Shell) -> None:
    put("a.txt")
    shell.model.script = lambda text, closing: f"```\n{rows(text)}```\n{closing}"

    done = shell("rewrite", "a.txt", "do it", "-D")
    line, _ = shell("rewrite", "a.txt", "do it", "-D", "--json").lines

    assert 'a.txt: left out of the reply: a wrapper, "```"' in done.err
    assert line["stripped"][0] == {"what": "a wrapper", "text": "```"}


def test_a_file_longer_than_the_context_is_rewritten_in_parts(shell: Shell) -> None:
    path = put("a.txt", TEXT.replace("line 30", "\nline 30"))
    shell.model.n_ctx = 5000
    shell.model.script = edited(lambda text: text.replace("line 20 of the", "row 20 of the"))

    plan, _ = shell("rewrite", "a.txt", "do it", "-n", "--json").lines
    done = shell("rewrite", "a.txt", "do it", "-w")

    assert plan["chunks"] > 1
    assert done.code == 0
    assert "row 20 of the" in path.read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["a.txt", "do it", "-D", "--backup-suffix", ".orig"],
        ["a.txt", "do it", "-w", "--after-fail", "undo"],
        ["a.txt", "do it", "-w", "--format", "side"],
        ["a.txt", "do it", "--check", "--format", "json"],
        ["a.txt", "do it", "-n", "--format", "unified"],
        ["--continue"],
        ["-r", "british"],
        [".", "."],
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_one_line_and_exit_2(shell: Shell, words: list[str]) -> None:
    put("a.txt")

    done = shell("rewrite", *words)

    assert done.code == 2
    assert shell.loaded == 0
    assert Path("a.txt").read_text() == TEXT


def test_help_has_a_line_for_each_flag(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    with pytest.raises(SystemExit):
        cli.main(["rewrite", "--help"])

    own = capsys.readouterr().out.split("what to do with it")[1]
    assert [line for line in own.splitlines() if line.startswith(" " * 20)] == []
    assert all(len(line) < 80 for line in own.splitlines())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--keep", "nothing"], "--keep knows numbers, urls, quotes, headings, and not nothing"),
        (["--protect", "("], "--protect ( is no regular expression: missing )"),
        (["--match", "("], "--match ( is no regular expression: missing )"),
        (["--between", "a", "*"], "--between * is no regular expression: nothing to repeat"),
        (["--protect", f"{'(' * 20_000}{')' * 20_000}"], "is no regular expression"),
    ],
)
def test_a_wrong_guard_rail_is_named_in_one_line_before_a_model_is_loaded(
    shell: Shell, flags: list[str], said: str
) -> None:
    put("a.txt")

    done = shell("rewrite", "a.txt", "do it", "-w", *flags)

    assert (done.code, shell.loaded) == (2, 0)
    assert said in done.err
    assert done.err.count("\n") == 1


def test_an_empty_list_of_writes_says_so(shell: Shell) -> None:
    put("a.txt")

    assert shell("undo", "--list").err == "nothing that was written can be taken back\n"
    assert shell("undo", "a.txt", "--list").err == "nothing that was written to a.txt can be taken back\n"
