"""Reading and writing job files: YAML, `base:` and `--set` to an experiment spec, and back."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import yaml
from pydantic import ValidationError

from srlhpc.errors import UserError
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.overrides import apply, overlay
from srlhpc.specs.problems import problems, shown
from srlhpc.specs.renamed import Former, collecting
from srlhpc.specs.text_file import read_text
from srlhpc.specs.yaml_source import Dumper, Keys, Written, parse

_log = logging.getLogger(__name__)
_SECTIONS = ExperimentSpec.model_fields
_PATH = re.compile(r"([a-z_]+(?:\.[\w-]+)*)(?:: | ')")


class JobFile(NamedTuple):
    """A spec, where each of its values was written, and what was dropped or translated on the way to it."""

    spec: ExperimentSpec
    written: Written
    notes: tuple[str, ...]
    renamed: tuple[Former, ...] = ()
    """Words in it that are called otherwise now."""

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Adds file and line to a UserError from inside, whose message starts with a path of the spec."""
        with naming_places(self.written, _SECTIONS):
            yield


@contextmanager
def naming_places(written: Written, sections: Collection[str]) -> Iterator[None]:
    """Adds file and line to a UserError from inside, whose message starts with a path, and a colon or a quoted name.

    Without such a path, only the file is added.

    Args:
        written: where values were written.
        sections: the words that such a path begins with.
    """
    try:
        yield
    except UserError as error:
        path = _PATH.match(str(error))
        keys = _keys(path.group(1), sections) if path else ()
        place = written.place(keys) if keys else written.place(()).source
        raise UserError(f"{place}: {error}") from error.__cause__


def load_experiment(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> ExperimentSpec:
    """Reads a job file, with what it inherits from, and applies the overrides in order.

    Former words in it are translated without a word: use `load_job` for a file that a user keeps.

    Args:
        path: the job file.
        overrides: `path=value` each, as given to `--set`.

    Raises:
        UserError: something is wrong; one line for every problem, with file, line and path.
    """
    job = _read(path, overrides)
    # A run's own spec keeps the words of its time; what somebody types now does not.
    _warn(job, (word for word in job.renamed if job.written.place(word.keys(job.written)).override))
    return job.spec


def load_job(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> JobFile:
    """Same as `load_experiment`, for callers who find problems later that belong to a line of the file."""
    job = _read(path, overrides)
    _warn(job, job.renamed)
    return job


def _read(path: str | os.PathLike[str], overrides: Sequence[str]) -> JobFile:
    job = parse_job(read_text(os.fspath(path)), os.fspath(path), overrides)
    for note in job.notes:
        _log.info(note)
    return job


def _warn(job: JobFile, renamed: Iterable[Former]) -> None:
    for word in renamed:
        _log.warning(word.note(job.written))


def load_text(text: str, source: str, overrides: Sequence[str] = ()) -> ExperimentSpec:
    """Same as `load_experiment`, from text; `source` is the path that errors name and `base:` is relative to."""
    return parse_job(text, source, overrides).spec


def parse_job(text: str, source: str, overrides: Sequence[str] = ()) -> JobFile:
    """Same as `load_job`, from text; the notes are returned, not logged."""
    written, notes = _inherited(text, source, ())
    for override in overrides:
        written, dropped = apply(written, override)
        notes += dropped
    try:
        with collecting() as former:
            spec = ExperimentSpec.model_validate(written.data)
        return JobFile(spec, written, tuple(notes), tuple(former))
    except ValidationError as error:
        found = problems(error.errors(include_url=False), written)
        raise UserError("\n".join(str(problem) for problem in found)) from None


def dump_experiment(spec: ExperimentSpec) -> str:
    """The whole spec as YAML, defaults included; `load_text` gives an equal spec."""
    data = spec.model_dump(mode="json")
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)


def _keys(path: str, sections: Collection[str]) -> Keys:
    words = path.split(".")
    return tuple(int(word) if word.isdecimal() else word for word in words) if words[0] in sections else ()


def _inherited(text: str, source: str, above: tuple[str, ...]) -> tuple[Written, list[str]]:
    """The values of a file laid over those of its base, and notes on what was dropped."""
    written = parse(text, source)
    if written.data is None:
        raise UserError(
            f"{source}: is empty; it needs environment, policies, actors and stop; write a job file, or name another"
        )
    if not isinstance(written.data, dict):
        raise UserError(
            f"{written.place(())}: is {shown(written.data)}; a job file is a mapping of sections; name another, or "
            "write one"
        )
    if "base" not in written.data:
        return written, []
    name, place = written.data.pop("base"), written.place(("base",))
    if not isinstance(name, str):
        raise UserError(f"{place}: base: is {shown(name)}; it must be the path of a job file")
    base = os.path.normpath(os.path.join(os.path.dirname(source), name))
    chain = (*above, os.path.normpath(source))
    if base in chain:
        raise UserError(f"{place}: base: inherits from itself: {' -> '.join((*chain, base))}; leave one of them out")
    try:
        base_text = read_text(base)
    except UserError as error:
        raise UserError(f"{place}: base: {error}") from None
    below, notes = _inherited(base_text, base, chain)
    merged, dropped = overlay(below, written)
    return merged, notes + dropped
