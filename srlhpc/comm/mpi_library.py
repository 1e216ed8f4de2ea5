"""mpi4py, told to leave initialisation and finalisation to `start_mpi` and `finalize_or_exit`."""

from __future__ import annotations

import mpi4py

mpi4py.rc.initialize = False
mpi4py.rc.finalize = False

from mpi4py import MPI as MPI  # noqa: E402
