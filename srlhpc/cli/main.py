"""`srlhpc`: finds the command's module when it is used, so that a command loads only what it needs."""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
from collections.abc import Sequence

import click

import srlhpc
from srlhpc.cli.leaving import leave
from srlhpc.cli.output import OutputError, drop_output, prepare_output
from srlhpc.data.full_disk import is_full
from srlhpc.errors import ClusterError, UserError, did_you_mean

COMMANDS = {
    "run": "Train here, with live progress.",
    "submit": "Train on a Slurm cluster.",
    "resume": "Resume a run from its newest whole checkpoint.",
    "fork": "A new run from a checkpoint of another.",
    "status": "Where runs stand.",
    "logs": "What the ranks wrote.",
    "why": "What failed first, and what to do.",
    "cancel": "Write a checkpoint and end.",
    "eval": "Play episodes with a run's policy.",
    "arena": "Play runs against each other.",
    "record": "Write episodes of a run's policies to a file.",
    "plot": "Returns against steps or seconds.",
    "checkpoint": "What is inside a checkpoint, and whether it is whole.",
    "cluster": "Cluster profiles: a first one, and what is free.",
    "doctor": "Check that runs can work here, or on a cluster.",
    "bench": "How fast it is here.",
    "spec": "The resolved spec of a job, its schema, its plan.",
}
"""Each is a module of this package that offers `command`; in the order of the help."""
MODULES = {"eval": "evaluate"}


class LazyCommands(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature, here and below)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"srlhpc.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command '{args[0]}'{did_you_mean(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(srlhpc.__version__, prog_name="srlhpc")
def cli() -> None:
    """Train reinforcement-learning agents on a laptop or a Slurm cluster."""


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code: 2 for the user's input, 3 for the cluster, 130 for Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        code = cli.main(arguments, prog_name="srlhpc", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except UserError as error:
        click.echo(f"srlhpc: {error}", err=True)
        return 2
    except ClusterError as error:
        click.echo(f"srlhpc: {error}", err=True)
        return 3
    except OSError as error:
        return _code_of(error)
    except OutputError as error:
        drop_output()
        click.echo(f"srlhpc: standard output cannot be written: {error}", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _code_of(error: OSError) -> int:
    """The exit code for files that cannot be read or written, in one line.

    Raises:
        OSError: it is of another kind.
    """
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has left, for example `head`; Python would complain again at exit.
        drop_output()
        return 141
    if isinstance(error, PermissionError):
        click.echo(f"srlhpc: {error.filename}: {error.strerror}; it may be another user's", err=True)
        return 2
    if error.errno == errno.ENAMETOOLONG:
        click.echo(f"srlhpc: {error.filename}: {error.strerror}; choose a shorter one", err=True)
        return 2
    if is_full(error):
        click.echo(f"srlhpc: {error.filename or 'a file'}: {error.strerror}; make room on that disk", err=True)
        return 2
    raise error


def main() -> None:
    """Entry point of the `srlhpc` script."""
    prepare_output()
    # Modules that a job names may lie in the working directory, where the ranks (`python -m`) find them too.
    sys.path.append(os.getcwd())
    try:
        code = run_command_line()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    leave(code)


if __name__ == "__main__":
    main()
