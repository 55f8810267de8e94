"""One process at a time in a folder; the lock of a process that dies is free again."""

import errno
import signal
import subprocess
import sys

import pytest

from binas.base.errors import FileError
from binas.base.lock import locked


def test_a_folder_is_made_and_held_once(tmp_path):
    again = locked(tmp_path / "new" / "run")
    with locked(tmp_path / "new" / "run"), pytest.raises(FileError, match="another binas process"), again:
        pass
    with locked(tmp_path / "new" / "run"):
        pass


def test_work_that_fails_gives_the_lock_back(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass


def test_a_killed_process_leaves_no_lock(tmp_path):
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom binas.base.lock import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(FileError, match="another binas process"), locked(tmp_path):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with locked(tmp_path):
        pass


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot work in"), locked(tmp_path / "file"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="flock is Unix")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_no_other_process(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, "no locks here")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(FileError, match=r"no locks here.*has locks"), locked(tmp_path):
        pass
