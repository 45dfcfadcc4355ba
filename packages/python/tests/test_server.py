"""What the module promises of a server besides the clients' view: its end, its errors, its clock."""

import os
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import bolide as bolide_package
from bolide import BolideError, RequestError, StartError, find_binary

START = datetime(2030, 1, 1, tzinfo=timezone.utc)


def test_stop_ends_the_process_and_may_be_called_again():
    db = bolide_package.server()
    assert is_running(db.pid)
    db.stop()
    assert not is_running(db.pid)
    db.stop()


def test_an_error_in_the_block_ends_the_process_and_is_the_one_that_is_raised():
    with pytest.raises(KeyError, match="mine"):
        with bolide_package.server() as db:
            raise KeyError("mine")
    assert not is_running(db.pid)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "pass"])
def test_the_server_ends_with_the_process_that_started_it(end):
    program = f"import bolide, os, signal; db = bolide.server(); print(db.pid, flush=True); {end}"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60)
    wait_for_end(int(done.stdout))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_leaves_the_server_running_and_does_not_delay_its_end():
    program = (
        "import bolide, os, sys, time\n"
        "db = bolide.server()\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "db.clock.now()\n"
        "idle = os.fork()\n"
        "if idle == 0: time.sleep(600)\n"
        "db.stop()\n"
        "os.kill(idle, 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_refused_option_is_shown_with_what_the_server_says_of_it():
    with pytest.raises(StartError, match="--no-such-option"):
        bolide_package.server(args=["--no-such-option"])


def test_a_missing_binary_is_named(tmp_path, monkeypatch):
    with pytest.raises(StartError, match=r"binary: not an executable file. value=`.*nothing`"):
        bolide_package.server(binary=tmp_path / "nothing")
    monkeypatch.setenv("BOLIDE_BIN", str(tmp_path / "nothing"))
    with pytest.raises(StartError, match="BOLIDE_BIN: not an executable file"):
        find_binary()


@pytest.mark.skipif(os.name != "posix", reason="the binary is a shell script")
def test_a_server_that_does_not_get_ready_is_ended_in_time(tmp_path):
    binary = tmp_path / "slow"
    binary.write_text("#!/bin/sh\necho still busy >&2\nexec sleep 600\n")
    binary.chmod(0o755)
    with pytest.raises(StartError, match="not ready within 0.5 s\nstill busy"):
        bolide_package.server(binary=binary, start_timeout=0.5)


def test_options_come_only_from_the_call(monkeypatch):
    monkeypatch.setenv("BOLIDE_NO_MONGO", "1")
    monkeypatch.setenv("BOLIDE_KEY", "bm90IHRoaXMga2V5")
    with bolide_package.server() as db:
        assert db.mongo_uri.startswith("mongodb://localhost:")
    with bolide_package.server(args=["--no-mongo"]) as db:
        with pytest.raises(BolideError, match="MongoDB"):
            db.mongo_uri


def test_a_key_of_ones_own_is_the_key():
    with bolide_package.server(key="YSBrZXkgb2Ygb25lJ3Mgb3du") as db:
        assert "AccountKey=YSBrZXkgb2Ygb25lJ3Mgb3du;" in db.connection_string
        db.clock.advance(hours=1)
        db.reset()


def test_a_directory_keeps_databases(tmp_path):
    for first in (True, False):
        with bolide_package.server(data_dir=tmp_path / "data", virtual_clock=START) as db:
            assert db.clock.now() == START
            answer = db._admin.request("GET", "health")
            assert answer["engine"] == "lsm"


def test_the_clock_moves_by_every_unit():
    with bolide_package.server(virtual_clock=START) as db:
        now = db.clock.advance(timedelta(days=1), weeks=1, days=1, hours=1, minutes=1, seconds=1, milliseconds=5)
        assert now == datetime(2030, 1, 10, 1, 1, 1, 5000, tzinfo=timezone.utc)
        assert db.clock.now() == now
        assert db.clock.set(now + timedelta(days=0.5)) == now + timedelta(hours=12)


def test_the_clock_refuses_what_is_unclear():
    with bolide_package.server() as db:
        with pytest.raises(ValueError, match="by how much"):
            db.clock.advance()
        with pytest.raises(ValueError, match="negative"):
            db.clock.advance(days=-1)
        with pytest.raises(ValueError, match="whole milliseconds"):
            db.clock.advance(timedelta(microseconds=1))
        with pytest.raises(ValueError, match="time zone"):
            db.clock.set(datetime(2030, 1, 1))
    with bolide_package.server(virtual_clock=False) as db:
        with pytest.raises(RequestError, match="409"):
            db.clock.advance(days=1)


def test_threads_advance_the_clock_together():
    with bolide_package.server(virtual_clock=START) as db:
        threads = [threading.Thread(target=lambda: [db.clock.advance(seconds=1) for _ in range(25)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db.clock.now() == START + timedelta(seconds=200)


def test_the_module_runs_the_command():
    done = subprocess.run([sys.executable, "-m", "bolide", "--version"], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.startswith("bolide ")


def is_running(pid):
    """Whether a process with this id has not ended; one that only waits to be collected has."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def wait_for_end(pid):
    """Fails if the process is still there after some seconds; it is not ours, so nothing tells of its end."""
    ended = threading.Event()
    for _ in range(1000):
        if not is_running(pid):
            return
        ended.wait(0.02)
    os.kill(pid, signal.SIGKILL)
    pytest.fail(f"the server {pid} outlived its parent")
