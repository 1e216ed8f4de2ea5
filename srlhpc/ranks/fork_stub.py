"""Stands in for a rank that the fork server forks: `python -I -S fork_stub.py ADDRESS MODULE ARGUMENT...`

It is what the launcher has started. It gives the fork server what it was started with (environment, folder, open
descriptors, ignored signals, limits), waits, and ends as the rank ends; the rank dies with it, and it with its parent.
Where no fork server answers, it becomes the rank. It is started once for each rank, so it imports little.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys

SIZE = struct.Struct("<q")
"""Length of the request, in bytes. With it come the descriptors."""
FORKED = b"f"
"""What the fork server answers once there is a rank."""
STATUS = struct.Struct("<i")
"""How the rank ended, as waitpid(2) says it."""
CREDENTIALS = struct.Struct("3i")
"""Process, user and group at the other end of a socket."""
_PR_SET_PDEATHSIG = 1
_LIMITS = ("RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_NOFILE", "RLIMIT_STACK")


def main(address: str, *program: str) -> None:
    """Ends as the rank that runs a module does.

    Args:
        address: of the fork server, in the abstract namespace.
        program: module, and what its `main` finds in `sys.argv`.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with socket.socket(socket.AF_UNIX) as server:
        if not _is_forked(server, address, program):
            os.execv(sys.executable, [sys.executable, "-m", *program])
        ended = b""
        with contextlib.suppress(OSError):
            while len(ended) < STATUS.size and (part := server.recv(STATUS.size - len(ended))):
                ended += part
    # Nothing more comes only where the fork server was killed, and its ranks with it.
    status = STATUS.unpack(ended)[0] if len(ended) == STATUS.size else signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_forked(server: socket.socket, address: str, program: tuple[str, ...]) -> bool:
    """Asks for a rank; false where nobody answers, or one who is not of this user, or who ends before there is one."""
    try:
        server.connect("\0" + address)
        if user_behind(server) != os.getuid():
            return False
        _ask(server, program)
        return server.recv(len(FORKED)) == FORKED
    except OSError:
        return False


def user_behind(connection: socket.socket) -> int:
    """User at the other end of a socket."""
    found: int = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1]
    return found


def _ask(server: socket.socket, program: tuple[str, ...]) -> None:
    """Sends what a rank shall run, and what this process was started with."""
    descriptors = [number for number in map(int, os.listdir("/proc/self/fd")) if _is_inherited(number)]
    ignored = [int(number) for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]
    request = json.dumps(
        {
            "program": program,
            # Bytes that are not text survive as they do in `os.environ`.
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "umask": _umask(),
            "descriptors": descriptors,
            "ignored": ignored,
            "cores": sorted(os.sched_getaffinity(0)),
            "limits": {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        }
    ).encode()
    socket.send_fds(server, [SIZE.pack(len(request))], descriptors)
    server.sendall(request)


def _umask() -> int:
    # It can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        # The one that the folder was listed with.
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
