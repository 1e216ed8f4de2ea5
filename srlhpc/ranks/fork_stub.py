"""Stands in for a rank that the fork server forks: `python -I -S fork_stub.py ADDRESS MODULE ARGUMENT...`

It is what the launcher has started. It gives the fork server what it was started with (environment, folder, open
descriptors, ignored signals), waits, and ends as the rank ends; the rank dies with it. Where no fork server answers, it
becomes the rank. It is started once for each rank, so it imports little.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import struct
import sys

SIZE = struct.Struct("<q")
"""Length of the request, in bytes. With it come the descriptors."""
STATUS = struct.Struct("<i")
"""How the rank ended, as waitpid(2) says it."""


def main(address: str, *program: str) -> None:
    """Ends as the rank that runs a module does.

    Args:
        address: of the fork server, in the abstract namespace.
        program: module, and what its `main` finds in `sys.argv`.
    """
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect("\0" + address)
        except OSError:
            os.execv(sys.executable, [sys.executable, "-m", *program])
        ask(server, program)
        ended = b""
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


def ask(server: socket.socket, program: tuple[str, ...]) -> None:
    """Sends what a rank shall run, and what this process was started with."""
    descriptors = [number for number in map(int, os.listdir("/proc/self/fd")) if _is_inherited(number)]
    ignored = [number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]
    request = json.dumps(
        {
            "program": program,
            # Bytes that are not text survive as they do in `os.environ`.
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "umask": os.umask(0),
            "descriptors": descriptors,
            "ignored": [int(number) for number in ignored],
        }
    ).encode()
    socket.send_fds(server, [SIZE.pack(len(request))], descriptors)
    server.sendall(request)


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        # The one that the folder was listed with.
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
