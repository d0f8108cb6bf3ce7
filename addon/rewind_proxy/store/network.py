"""Network file systems, on which LMDB loses data (DESIGN §7)."""

from __future__ import annotations

import re
from pathlib import Path

from rewind_proxy.errors import StoreError

# Not 9p, which sandboxes (gVisor) use for a local root.
NETWORK_FILE_SYSTEMS = frozenset(
    "afs beegfs ceph cifs davfs fuse.ceph fuse.gcsfuse fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs "
    "glusterfs gpfs lustre ncpfs nfs nfs4 orangefs smb3 smbfs".split()
)

_ESCAPE = re.compile(r"\\([0-7]{3})")


def network_file_system(path: Path, mounts: str) -> str | None:
    """The type of the network file system that holds `path`, or None, by a table like `/proc/mounts`.

    `path` is absolute with its links resolved. In the table the last of the longest mount points wins; blanks
    there are octal escapes (proc(5)).
    """
    best, found = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[1]))
        if len(point.parts) >= best and path.is_relative_to(point):
            best, found = len(point.parts), fields[2]
    return found if found in NETWORK_FILE_SYSTEMS else None


def refuse_network(path: Path) -> None:
    """Raise `StoreError` for a folder on a network file system."""
    try:
        mounts = Path("/proc/mounts").read_text(errors="replace")
    except OSError:
        return  # no Linux: best effort
    kind = network_file_system(path, mounts)
    if kind:
        raise StoreError(
            f"{path} is on a network file system ({kind}), which LMDB cannot use: move the store"
        )
