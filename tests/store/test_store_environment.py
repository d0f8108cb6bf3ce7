"""An environment is opened once per process, and everything that is wrong with one is a sentence."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import lmdb
import pytest

from rewind_proxy.errors import StoreError, StoreFullError, StoreVersionError
from rewind_proxy.store import FORMAT_VERSION, Store
from rewind_proxy.store.environment import store_error
from rewind_proxy.store.network import network_file_system
from store.making import content_of, make_exchange, open_store
from support.children import PYTHON_PATH

MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local xfs rw 0 0
//server/share /mnt/with\\040blank cifs rw 0 0
me@host:/ /mnt/ssh fuse.sshfs rw 0 0
/dev/vdc /mnt/ssh ext4 rw 0 0

odd
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/store", None),
        ("/home/me/project/.rewind/store", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/me", None),
        ("/home/local/store", None),
        ("/mnt/with blank/store", "cifs"),
        ("/mnt/ssh/store", None),
    ],
)
def test_network_file_systems_are_known_by_the_mount_table(path: str, kind: str | None) -> None:
    """The longest mount point decides, the later of two equal ones, with the escapes of proc(5) undone."""
    assert network_file_system(Path(path), MOUNTS) == kind


def test_a_store_on_a_network_file_system_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the place, the kind of file system and what to do."""
    monkeypatch.setattr("rewind_proxy.store.network.network_file_system", lambda *_: "nfs4")
    with pytest.raises(StoreError, match=r"nfs4.*move the store"):
        open_store(place)


@pytest.mark.parametrize(
    "error",
    [
        lmdb.MapFullError("put"),
        lmdb.DiskError("commit"),
        OSError(errno.ENOSPC, "no space"),
        OSError(errno.EDQUOT, "quota"),
    ],
)
def test_no_room_is_an_error_of_its_own(error: lmdb.Error | OSError) -> None:
    """A full disk, quota or map is told apart from other errors, and names the place."""
    found = store_error(Path("/p/store"), error)
    assert isinstance(found, StoreFullError)
    assert "/p/store" in str(found)


def test_a_full_map_loses_the_recording_only(place: Path) -> None:
    """What does not fit is an error; what was there is still read, and what fits is still written."""
    with open_store(place, map_size=1 << 20) as store:
        kept = store.put(make_exchange("small"))
        with pytest.raises(StoreFullError, match="is full"):
            store.put(make_exchange("large", os.urandom(2 << 20)))
        assert store.lookup_exact(make_exchange("large").exact) == ()
        assert store.answer(kept).body == b"hi"
        assert store.put(make_exchange("small too")).seq == kept.seq + 1


def test_a_limit_on_address_space_takes_a_smaller_map(place: Path) -> None:
    """Where 64 GiB of addresses are not to be had, less is reserved, and the store works."""
    script = f"ulimit -v 6000000; exec {sys.executable} -c 'import sys; from store.making import *; "
    script += "open_store(Path(sys.argv[1])).put(make_exchange())' " + str(place)
    tests = Path(__file__).parent.parent
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{tests}{os.pathsep}{PYTHON_PATH}"}
    subprocess.run(["/bin/sh", "-c", script], env=env, check=True, timeout=60)
    with open_store(place, readonly=True) as store:
        assert store.count() == 1


@pytest.mark.parametrize("content", [b"", b"garbage" * 5000, b"\x00" * 8192])
@pytest.mark.parametrize("readonly", [False, True])
def test_garbage_is_no_store(place: Path, content: bytes, readonly: bool) -> None:
    """A file that is not LMDB's is refused by name, and is not touched."""
    open_store(place).close()
    (place / "1" / "data.mdb").write_bytes(content)
    before = content_of(place)
    if content == b"" and not readonly:
        open_store(place).close()  # LMDB begins an empty file anew
        return
    with pytest.raises(StoreError, match=str(place)):
        open_store(place, readonly=readonly)
    assert content_of(place) == before


@pytest.mark.parametrize("readonly", [False, True])
def test_a_store_cut_short_is_refused(place: Path, readonly: bool) -> None:
    """Half a file, as a broken copy leaves it, is refused: reading on would kill the process."""
    with open_store(place) as store:
        store.put(make_exchange(answer=os.urandom(1 << 20)))
    data = place / "1" / "data.mdb"
    os.truncate(data, data.stat().st_size // 2)
    with pytest.raises(StoreError, match="cut short"):
        open_store(place, readonly=readonly)


@pytest.mark.parametrize("readonly", [False, True])
def test_another_programs_environment_is_left_alone(place: Path, readonly: bool) -> None:
    """An LMDB file that is not a store of Rewind's is refused and not changed."""
    open_store(place).close()
    data = place / "1" / "data.mdb"
    data.unlink()
    with lmdb.open(str(data.parent), max_dbs=2) as other, other.begin(write=True) as txn:
        txn.put(b"a", b"b")
    before = content_of(place)
    with pytest.raises(StoreError, match="no store of Rewind's"):
        open_store(place, readonly=readonly)
    assert content_of(place) == before


@pytest.mark.parametrize("readonly", [False, True])
def test_a_newer_format_is_refused_with_both_versions(place: Path, readonly: bool) -> None:
    """A store of a newer Rewind is not read, not changed, and both formats are named."""
    with open_store(place) as store, store._place.write() as txn:
        txn.put("meta", b"format", b"%d" % (FORMAT_VERSION + 1))
    before = content_of(place)
    with pytest.raises(StoreVersionError, match=rf"format {FORMAT_VERSION + 1}.*up to {FORMAT_VERSION}\b"):
        open_store(place, readonly=readonly)
    assert content_of(place) == before


def test_one_process_shares_one_environment(place: Path) -> None:
    """Two stores on one path see each other's recordings; the first to close leaves the other working."""
    with open_store(place) as first, open_store(place.parent / "." / place.name) as second:
        record = first.put(make_exchange())
        assert second.lookup_exact(record.exact) == (record,)
        first.close()
        first.close()
        assert second.lookup_exact(record.exact) == (record,)
        with pytest.raises(StoreError, match="closed"):
            first.lookup_exact(record.exact)


def test_a_reader_shares_what_a_writer_has_open(place: Path, store: Store) -> None:
    """A read-only store beside a writer of the same process sees what is written, and cannot write."""
    with open_store(place, readonly=True) as reader:
        record = store.put(make_exchange())
        assert reader.lookup_exact(record.exact) == (record,)
        with pytest.raises(StoreError, match="reading only"):
            reader.put(make_exchange("other"))


def test_writing_what_this_process_has_open_for_reading_is_refused(place: Path) -> None:
    """LMDB cannot open a path twice: the error says what to do."""
    open_store(place).close()
    with open_store(place, readonly=True), pytest.raises(StoreError, match="read-only in this process"):
        open_store(place)


def test_a_forked_child_is_refused(place: Path, store: Store) -> None:
    """A child that was forked with a store open gets an error, and the parent's store goes on working."""
    store.put(make_exchange())
    pid = os.fork()
    if not pid:
        status = 1
        try:
            store.count()
        except StoreError as error:
            status = 0 if "fork" in str(error) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store.put(make_exchange("after")).seq == 2


READ_AS_NOBODY = """
import os, sys
from store.making import *
if os.geteuid() == 0:
    os.seteuid(65534)
folder = Path(sys.argv[1])
with open_store(folder, readonly=True) as store:
    [record] = store.lookup_exact(make_exchange().exact)
    assert store.answer(record).body == b"hi"
try:
    open_store(folder)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("with_lock_file", [True, False])
def test_a_folder_that_cannot_be_written_is_read(with_lock_file: bool) -> None:
    """A store that the user may only read is read without a lock; writing it is an error that says why."""
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "store"
        with open_store(place) as store:
            store.put(make_exchange())
        if not with_lock_file:
            (place / "1" / "lock.mdb").unlink()
        folders = [Path(base), place, place / "1"]
        for folder in folders:
            folder.chmod(0o555)
        for file in place.rglob("*.*"):
            file.chmod(0o444)
        before = content_of(place)
        env = {"PYTHONPATH": f"{Path(__file__).parent.parent}{os.pathsep}{PYTHON_PATH}"}
        argv = [sys.executable, "-c", READ_AS_NOBODY, str(place)]
        child = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert child.returncode == 0, child.stderr
        assert child.stdout.startswith(f"StoreError {place}")
        assert content_of(place) == before
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            NotADirectoryError(errno.ENOTDIR, "Not a directory", "/f/s"),
            "/f/s cannot be used (Not a directory): ",
        ),
        (lmdb.Error("/f/s: No such process"), "/f/s cannot be used (No such process): name another place"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/f/s/CURRENT"),
            "/f/s may not be written or read by this user: change its mode (Permission denied)",
        ),
    ],
)
def test_the_reason_is_the_system_s_words_and_the_place_is_said_once(error: OSError, said: str) -> None:
    """No `[Errno 13]`, and no second path behind the first."""
    told = str(store_error(Path("/f/s"), error))
    assert told.startswith(said)
    assert told.count("/f/s") == 1
