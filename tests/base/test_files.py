from __future__ import annotations

import errno
import json
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from binas.base import files
from binas.base.errors import FileError
from binas.base.files import (
    MAX_JSON_BYTES,
    MAX_YAML_BYTES,
    check_replaceable,
    dump_json,
    exists,
    parse_json,
    parse_yaml,
    read_json,
    read_text,
    read_yaml,
    write_bytes,
    write_text,
)
from strategies import json_values


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestWriting:
    def test_new_file_in_new_folders(self, tmp_path: Path) -> None:
        write_text(tmp_path / "a" / "b" / "new.txt", "grüße\n")
        assert (tmp_path / "a" / "b" / "new.txt").read_bytes() == "grüße\n".encode()

    @pytest.mark.parametrize("step", ["fsync", "replace", "fdopen"])
    def test_failure_in_the_middle_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        target = tmp_path / "table.json"
        target.write_text("old")

        def fail(*arguments: Any) -> Any:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path if step == "replace" else os, step, fail)
        with pytest.raises(FileError, match=r"table\.json.*No space left.*as it was"):
            write_text(target, "new" * 1000)
        assert target.read_text() == "old"
        assert listing(tmp_path) == ["table.json"]

    def test_interruption_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = tmp_path / "table.json"
        target.write_text("old")

        def interrupt(handle: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(files.os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_bytes(target, b"new")
        assert target.read_text() == "old"
        assert listing(tmp_path) == ["table.json"]

    def test_parent_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("old")
        with pytest.raises(FileError, match="cannot write"):
            write_text(tmp_path / "file" / "below.json", "new")
        assert (tmp_path / "file").read_text() == "old"

    def test_target_that_is_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "folder" / "inner").mkdir(parents=True)
        with pytest.raises(FileError, match="cannot write"):
            write_text(tmp_path / "folder", "new")
        assert listing(tmp_path) == ["folder"]
        assert listing(tmp_path / "folder") == ["inner"]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
    def test_folder_without_permission(self, tmp_path: Path) -> None:
        (tmp_path / "kept.txt").write_text("old")
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(FileError, match="Permission denied"):
                write_text(tmp_path / "kept.txt", "new")
        finally:
            tmp_path.chmod(0o700)
        assert (tmp_path / "kept.txt").read_text() == "old"

    def test_a_pipe_is_written_to_and_stays(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        much, heard = b"x" * 300_000, list[bytes]()  # more than a pipe holds at once
        reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        other = os.open(tmp_path / "pipe", os.O_WRONLY)  # until it is closed, the pipe has no end
        os.set_blocking(reading, True)
        with os.fdopen(reading, "rb") as file:
            reader = threading.Thread(target=lambda: heard.append(file.read()))
            reader.start()
            write_bytes(tmp_path / "pipe", much)
            os.close(other)
            reader.join()
        assert heard == [much]
        assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)
        assert listing(tmp_path) == ["pipe"]

    def test_a_pipe_that_nobody_reads_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileError, match=r"cannot write .*pipe: nobody reads from it\. Start first"):
            write_text(tmp_path / "pipe", "new")
        assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)

    def test_a_reader_that_ends_too_early_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        os.mkfifo(tmp_path / "pipe")
        reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        monkeypatch.setattr(os, "set_blocking", lambda *_: os.close(reading))  # between opening and writing
        with pytest.raises(FileError, match=r"pipe: Broken pipe\. What reads from it has ended"):
            write_text(tmp_path / "pipe", "new")

    @pytest.mark.skipif(not Path("/dev/fd").exists(), reason="there is no /dev/fd")
    def test_the_links_of_the_system_lead_to_pipes(self) -> None:
        """What the shell puts in the place of ``>(...)``."""
        reader, writer = os.pipe()
        write_text(Path(f"/dev/fd/{writer}"), "new")
        os.close(writer)
        with os.fdopen(reader) as heard:
            assert heard.read() == "new"

    def test_other_links_do_not_lead_to_pipes_or_devices(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "own").symlink_to("pipe")
        (tmp_path / "device").symlink_to("/dev/tty")
        for name, said in (
            ("own", "pipe: it is not a regular file"),
            ("device", "device: it is a link to /dev/tty"),
        ):
            with pytest.raises(FileError, match=f"cannot write .*{said}"):
                write_text(tmp_path / name, "new")
            assert (tmp_path / name).is_symlink()

    def test_a_socket_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as there:
            there.bind("socket")
            for refuse in (check_replaceable, lambda path: write_text(path, "new")):
                with pytest.raises(FileError, match="cannot write socket: it is not a regular file"):
                    refuse(Path("socket"))
        assert stat.S_ISSOCK(Path("socket").lstat().st_mode)
        assert listing(tmp_path) == ["socket"]

    @pytest.mark.parametrize("there", [True, False])
    def test_a_link_is_followed_within_its_folder(self, tmp_path: Path, there: bool) -> None:
        (tmp_path / "below").mkdir()
        (tmp_path / "latest.json").symlink_to("below/first.json")
        if there:
            (tmp_path / "below" / "first.json").write_text("old")
        write_text(tmp_path / "latest.json", "new")
        assert (tmp_path / "latest.json").is_symlink()
        assert (tmp_path / "below" / "first.json").read_text() == "new"
        assert listing(tmp_path / "below") == ["first.json"]

    @pytest.mark.parametrize("target", ["../precious", "../nothing", "../below/table.json"])
    def test_a_link_out_of_its_folder_is_refused(self, tmp_path: Path, target: str) -> None:
        (tmp_path / "precious").write_text("old")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "table.json").symlink_to(target)
        for refuse in (check_replaceable, lambda path: write_text(path, "new")):
            with pytest.raises(FileError, match=rf"table\.json: it is a link to {target}.* remove the link"):
                refuse(tmp_path / "run" / "table.json")
        assert (tmp_path / "run" / "table.json").is_symlink()
        assert (tmp_path / "precious").read_text() == "old"
        assert listing(tmp_path) == ["precious", "run"]

    def test_a_circle_of_links_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x").symlink_to("x")
        with pytest.raises(FileError, match="it is a link to x"):
            write_text(tmp_path / "x", "new")
        assert (tmp_path / "x").is_symlink()

    def test_permissions_of_an_existing_file_stay(self, tmp_path: Path) -> None:
        target = tmp_path / "private.json"
        target.write_text("old")
        target.chmod(0o640)
        write_text(target, "new")
        assert target.read_text() == "new"
        assert target.stat().st_mode & 0o777 == 0o640

    def test_new_files_can_be_read_by_others(self, tmp_path: Path) -> None:
        write_text(tmp_path / "new.json", "new")
        assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
    def test_names_that_cannot_be(self, tmp_path: Path, name: str) -> None:
        assert not exists(tmp_path / name)
        with pytest.raises(FileError, match="cannot write"):
            write_text(tmp_path / name, "new")
        with pytest.raises(FileError, match="cannot read"):
            read_text(tmp_path / name)
        assert listing(tmp_path) == []

    @pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EACCES])
    def test_a_disk_that_does_not_answer_is_not_a_missing_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def fails(path: Path, **_: bool) -> None:
            raise OSError(number, os.strerror(number), str(path))

        (tmp_path / "weights.json").write_text("{}")
        monkeypatch.setattr(Path, "stat", fails)
        with pytest.raises(FileError, match=rf"weights\.json: {os.strerror(number)}"):
            exists(tmp_path / "weights.json")

    def test_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert exists(tmp_path / "file")
        assert exists(tmp_path)
        assert not exists(tmp_path / "none")
        assert not exists(tmp_path / "file" / "in a file")
        (tmp_path / "link").symlink_to(tmp_path / "none")
        assert not exists(tmp_path / "link")

    def test_text_that_is_not_text(self, tmp_path: Path) -> None:
        with pytest.raises(FileError, match="surrogate"):
            write_text(tmp_path / "bad.txt", "\ud800")
        assert listing(tmp_path) == []


class TestReading:
    def test_missing_and_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FileError, match=r"gone\.json: No such file"):
            read_json(tmp_path / "gone.json")
        with pytest.raises(FileError, match=r"a folder, not a regular file\. Name a file in it"):
            read_text(tmp_path)

    @pytest.mark.parametrize(("read", "limit"), [(read_yaml, MAX_YAML_BYTES), (read_json, MAX_JSON_BYTES)])
    def test_too_large(self, tmp_path: Path, read: Any, limit: int) -> None:
        path = tmp_path / "large"
        with path.open("wb") as file:
            file.truncate(limit + 1)
        with pytest.raises(FileError, match=f"more than the {limit} bytes"):
            read(path)

    def test_largest_that_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("x" * 10)
        assert read_text(tmp_path / "text", 10) == "x" * 10
        with pytest.raises(FileError, match="more than the 9 bytes"):
            read_text(tmp_path / "text", 9)

    def test_not_utf8(self, tmp_path: Path) -> None:
        (tmp_path / "latin.yaml").write_bytes("name: größe".encode("latin-1"))
        with pytest.raises(FileError, match=r"latin\.yaml is not UTF-8 text .* at byte 8"):
            read_yaml(tmp_path / "latin.yaml")

    def test_byte_order_mark_and_line_ends_of_windows(self, tmp_path: Path) -> None:
        (tmp_path / "windows.json").write_bytes(b'\xef\xbb\xbf{"a":\r\n 1}\r\n')
        assert read_json(tmp_path / "windows.json") == {"a": 1}
        assert read_text(tmp_path / "windows.json") == '{"a":\n 1}\n'


class TestJson:
    @given(json_values)
    def test_round_trip(self, value: Any) -> None:
        text = dump_json(value)
        assert text.endswith("\n")
        assert parse_json(text, "text") == value

    @pytest.mark.parametrize("cut", [1, 20, -2])
    def test_truncated(self, tmp_path: Path, cut: int) -> None:
        whole = json.dumps({"format": "binas/costs", "values": [1.5, 2.5, {"a": 1}]}, indent=1)
        (tmp_path / "cut.json").write_text(whole[:cut])
        with pytest.raises(FileError, match=r"cut\.json is not complete JSON: .* at line \d+, column \d+"):
            read_json(tmp_path / "cut.json")

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
    def test_constants_that_are_not_json(self, value: str) -> None:
        with pytest.raises(FileError, match=f"the table holds the value {value}"):
            parse_json(f'{{"a": {value}}}', "the table")
        assert repr(parse_json(value, "the table", allow_nan=True)) == repr(float(value))

    def test_duplicate_keys(self) -> None:
        with pytest.raises(FileError, match="the key 'b' twice"):
            parse_json('{"a": 1, "in": {"b": 1, "c": 2, "b": 3}}', "text")

    @pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000])
    def test_deep_nesting(self, text: str) -> None:
        with pytest.raises(FileError, match="nested too deeply"):
            parse_json(text, "text")

    def test_endless_integer(self) -> None:
        with pytest.raises(FileError, match="whole number of 5000 digits"):
            parse_json("[" + "1" * 5000 + "]", "text")

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_nan_is_not_written(self, value: float) -> None:
        with pytest.raises(FileError, match="NaN or infinite"):
            dump_json({"a": [value]})


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"


class TestYaml:
    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            (BOMB, 2, r"aliases \(\*a\) are not read"),
            ("base: &b {x: 1}\nnext:\n  <<: *b\n", 3, "aliases"),
            ("a: 1\nb: !!python/object/apply:os.getcwd []\n", 2, "tags .*python/object/apply"),
            ("a: !custom 1\n", 1, "tags .*!custom"),
            ("a: !!binary aGk=\n", 1, "tags"),
            ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", 5, "the key 'c' appears twice"),
            ("a: 1\n? [x, y]\n: 2\n", 2, "a key must be a name"),
            ("a: 1\nb: 2024-13-45\n", 2, "a value cannot be read"),
            ("a: 1\nb: " + "1" * 5000, 2, "a number of 5000 digits"),
            ("a:\n " + "[" * 41, 2, "nested more than 40 levels"),
            ("a: " + "[" * 100_000, 1, "nested more than 40 levels"),
            ("".join(" " * i + "k:\n" for i in range(60)), 41, "nested more than 40 levels"),
        ],
    )
    def test_hostile_text(self, text: str, line: int, message: str) -> None:
        with pytest.raises(FileError, match=rf"hostile, line {line}: .*{message}"):
            parse_yaml(text, "hostile")

    @pytest.mark.parametrize(
        ("text", "line"),
        [("a: [1, 2\nb: 3\n", 2), ("a: 1\n b: 2\n", 2), ("a: 'open\n", 2), ("---\na\n---\nb\n", 3)],
    )
    def test_broken_text_names_the_line(self, text: str, line: int) -> None:
        with pytest.raises(FileError, match=f"broken is not valid YAML at line {line}: "):
            parse_yaml(text, "broken")

    @pytest.mark.parametrize("text", ["a: \x07", "a: =\n", "<<: 1\n"])
    def test_odd_text_is_refused(self, text: str) -> None:
        with pytest.raises(FileError, match="odd is not valid YAML"):
            parse_yaml(text, "odd")

    def test_plain_values(self) -> None:
        document = parse_yaml("a: [1, 2.5, on, 'on', text]\nb: {c: null}\n")
        assert document.data == {"a": [1, 2.5, True, "on", "text"], "b": {"c": None}}
        assert parse_yaml("").data is None

    def test_lines(self) -> None:
        document = parse_yaml("a: 1\nb:\n  - c: 2\n    d: 3\n  - e\n")
        keys = [("a",), ("b",), ("b", 0, "c"), ("b", 0, "d"), ("b", 1)]
        assert [document.line(key) for key in keys] == [1, 2, 3, 4, 5]
        assert document.line(("b", 0, "missing")) == 3
        assert document.line(("nowhere",)) == 1


def test_a_folder_is_listed_by_name_and_one_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.json").write_text("1")
    (tmp_path / "a.json").write_text("1")
    assert [path.name for path in files.listed(tmp_path)] == ["a.json", "b"]
    assert [path.name for path in files.listed(tmp_path, "*/*.json")] == ["x.json"]
    assert files.listed(tmp_path / "none") == []

    def fails(doing, path):
        if doing == "read":
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "touch", fails)
    with pytest.raises(FileError, match=r"cannot read .*: Input/output error"):
        files.listed(tmp_path)


@pytest.mark.parametrize(
    "pattern", ["*", "*/*", "**/*", "**/*.json", "b/**", "a.json", "b/c/*.json", "a.json/*", "n/*"]
)
def test_patterns_mean_what_they_mean_to_pathlib(tmp_path, pattern):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "b")
    for name in ("a.json", "b/x.json", "b/.hidden", "b/c/y.json", "b/c/z.txt"):
        (tmp_path / name).write_text("1")
    wanted = tmp_path.glob("b/**/*" if pattern == "b/**" else pattern)
    assert files.listed(tmp_path, pattern) == sorted(wanted)


@pytest.mark.parametrize("pattern", ["*/*", "**/*", "b/c/*"])
def test_a_folder_further_in_that_cannot_be_read_is_told(tmp_path, monkeypatch, pattern):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "x.json").write_text("1")

    def fails(doing, path):
        if path.parent == tmp_path:
            raise OSError(13, "Permission denied")

    monkeypatch.setattr(files, "touch", fails)
    with pytest.raises(FileError, match=r"/b: Permission denied"):
        files.listed(tmp_path, pattern)


def test_a_circle_of_links_is_nothing(tmp_path):
    (tmp_path / "x").symlink_to(tmp_path / "x")
    assert not files.exists(tmp_path / "x")
    assert not files.is_regular(tmp_path / "x")
    assert not files.is_folder(tmp_path / "x")


def test_a_folder_is_copied_whole_or_not_at_all_and_removed(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    (tmp_path / ".b.copy").mkdir()  # of a process that was killed
    with monkeypatch.context() as context:

        def fails(doing, path):
            if doing == "rename":
                raise OSError(28, "No space left on device")

        context.setattr(files, "touch", fails)
        with pytest.raises(FileError, match=r"No space left.*There is nothing of it there"):
            files.copy_tree(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    files.copy_tree(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "x").read_text() == "1"
    files.remove_tree(tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
