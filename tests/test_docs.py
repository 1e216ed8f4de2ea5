"""What the documents name exists: commands and their options, files, links, make targets, fields of profiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
import yaml

from envs.gymnasium import Settings, build
from srlhpc.cli.main import COMMANDS, LazyCommands, cli
from srlhpc.specs.cluster import ClusterProfile, PartitionFacts, RoleResources

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "running_on_slurm.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FOLDERS = "srlhpc|tests|jobs|envs|docs|benchmarks"
_WORD = re.compile(r"(?<![\w/.-])srlhpc(?: +[^\s`|;#()]+)+")


def _names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def _code(text: str) -> Iterator[str]:
    """Lines of fenced blocks, and pieces between backticks."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield line
        else:
            yield from re.findall(r"`([^`]+)`", line)


def _command_lines(text: str) -> Iterator[list[str]]:
    for piece in _code(text):
        for match in _WORD.finditer(piece):
            words = match[0].split()[1:]
            if re.fullmatch(r"[a-z]+", words[0]):
                yield words


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the words after them."""
    assert isinstance(cli, LazyCommands)
    context = click.Context(cli)
    assert words[0] in COMMANDS, f"there is no command `srlhpc {words[0]}`"
    found = cli.get_command(context, words[0])
    assert found is not None
    rest = words[1:]
    if isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        inner = found.get_command(context, rest[0])
        assert inner is not None, f"there is no command `srlhpc {' '.join(words[:2])}`"
        return inner, rest[1:]
    return found, rest


def _options(command: click.Command) -> set[str]:
    return {"--help", "-h"} | {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("document", DOCUMENTS, ids=_names(DOCUMENTS))
def test_commands_and_options_of_a_document_exist(document: Path) -> None:
    for words in _command_lines(document.read_text()):
        command, rest = _command(words)
        for word in rest:
            if re.match(r"-{1,2}[a-z]", word):
                name = word.partition("=")[0].rstrip(".,:")
                assert name in _options(command), f"srlhpc {' '.join(words)}: no option {name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=_names(DOCUMENTS))
def test_links_and_files_of_a_document_exist(document: Path) -> None:
    text = document.read_text()
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [link for link in links if link and not (document.parent / link).exists()]
    paths = [path for piece in _code(text) for path in re.findall(rf"(?<![\w/.-])(?:{_FOLDERS})/[\w./-]*\w", piece)]
    missing += [path for path in paths if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_names(DOCUMENTS))
def test_make_targets_of_a_document_exist(document: Path) -> None:
    targets = re.findall(r"(?m)^([a-z%-]+):", (ROOT / "Makefile").read_text())
    patterns = [target.replace("%", r"\w+") for target in targets]
    for piece in _code(document.read_text()):
        for wanted in re.findall(r"(?:^|\s)make ([a-z][\w-]*)", piece):
            assert any(re.fullmatch(pattern, wanted) for pattern in patterns), f"no target {wanted} in the Makefile"


def test_no_document_has_a_place_that_waits_for_its_numbers() -> None:
    waiting = re.compile(r"^[A-Z_]{4,}\.?$|\b[A-Z]+_(?:MB|GB|S) (?:MB|GB|s)\b|\b(?:TODO|TBD|FIXME|XXX)\b", re.M)
    assert [(path.name, found[0]) for path in DOCUMENTS if (found := waiting.search(path.read_text()))] == []


def test_guide_to_slurm_explains_every_field_of_a_profile() -> None:
    explained = set(re.findall(r"(?m)^\| `(\w+)`", GUIDE.read_text()))
    models = (ClusterProfile, RoleResources, PartitionFacts)
    assert explained >= {field for model in models for field in model.model_fields}


def test_profiles_of_the_guide_to_slurm_are_valid() -> None:
    blocks = re.findall(r"(?ms)^```yaml\n(.*?)^```", GUIDE.read_text())
    profiles = [block for block in blocks if re.search(r"(?m)^roles:", block)]
    assert profiles
    for profile in profiles:
        ClusterProfile.model_validate(yaml.safe_load(profile))


def test_messages_that_the_guide_to_slurm_explains_are_in_the_code() -> None:
    sources = [path.read_text() for path in sorted((ROOT / "srlhpc").rglob("*.py"))]
    # Long texts are written in several pieces.
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources))
    table = GUIDE.read_text().partition("| message |")[2].partition("\n\n")[0]
    quoted = [text for row in table.splitlines() for text in re.findall(r"^\| `([^`]+)` \|", row)]
    parts = [part.strip(" ;:,") for text in quoted for part in re.split(r"…|\(.*\)|1|signal 9", text)]
    assert len(quoted) > 10
    assert [part for part in parts if part not in code] == []


def test_guided_tour_leads_through_files_that_exist() -> None:
    tour = (ROOT / "README.md").read_text().partition("## Guided tour")[2].partition("\n## ")[0]
    files = [ROOT / path for path in re.findall(r"\]\((srlhpc/[\w/]+\.py)\)", tour)]
    assert len(files) >= 6
    assert all(path.exists() for path in files)


def test_documents_name_every_command() -> None:
    named = {words[0] for document in DOCUMENTS for words in _command_lines(document.read_text())}
    assert named >= set(COMMANDS)


def test_environment_of_the_readme_can_be_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "readme_lab").mkdir()
    (tmp_path / "readme_lab" / "envs.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "id: my_lab.envs:Walk-v0" in text
    environment = build(Settings(factory="gymnasium", id="readme_lab.envs:Walk-v0"), 2, 0)
    environment.reset(0)
    steps = [environment.step({"agent": np.ones((2, 1), np.int64)}) for _ in range(9)]
    assert [episode.returns["agent"] for episode in steps[-1].episodes] == [45.0, 45.0]


def test_index_of_decisions_names_every_page_with_its_title() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    rows = re.findall(r"(?m)^\| \[(\d{4})\]\((\1-[\w-]+\.md)\) \| (.+?) \|", index)
    pages = [path for path in sorted((ROOT / "docs" / "decisions").glob("*.md")) if path.name != "README.md"]
    titles = [path.read_text().splitlines()[0].removeprefix("# ") for path in pages]
    assert [(file, title) for _, file, title in rows] == [
        (path.name, title) for path, title in zip(pages, titles, strict=True)
    ]
