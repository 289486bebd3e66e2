"""How a run was made, from what, and the command that makes it again."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from sparse_adapt.pipeline.demo_report import has_alone
from sparse_adapt.pipeline.report import Report
from sparse_adapt.pipeline.run import PLAN_FILE
from sparse_adapt.plugins.pages.subject import RunSubject
from sparse_adapt.report.sections import CommandText, Facts, Fold, Part, Section, TableRows
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.stages.record import read_stage_record

COLUMNS = (
    Column("stage", "stage", "text"),
    Column("what", "what", "text"),
    Column("name", "read", "text"),
    Column("sha256", "SHA-256", "token"),
)


def reproduction_section(subject: RunSubject) -> Section:
    """Command, data with checksums, versions, settings."""
    report = subject.report
    parts: list[Part] = [CommandText(_command(subject)), Facts(list(_facts(report)))]
    if subject.stages:
        table = Table("", COLUMNS, list(_read(subject)))
        parts.append(Fold("What each stage read, with checksums", [TableRows(table)]))
    plan = subject.run.folder / PLAN_FILE
    if plan.is_file():
        text = plan.read_text(encoding="utf-8", errors="replace")
        parts.append(Fold("Every setting (run.toml)", [CommandText(_without_places(text, subject))]))
    return Section("reproduction", "How to make it again", parts)


def _command(subject: RunSubject) -> str:
    """The command of an adaptation, of the demo, or of the run file."""
    record = read_stage_record(subject.run.model) or {}
    if record.get("command"):
        return str(record["command"])
    report = subject.report
    if "demo" in report:
        words = [
            "sparse-adapt",
            "demo",
            "--corpus",
            _name(str(report["corpus"])),
            "--model",
            _name(str(report["model"])),
        ]
        words += ["--preset", str(report.get("preset", "default"))]
        return shlex.join([*words, *(["--alone"] if has_alone(report) else [])])
    return "sparse-adapt run run.toml -o made-again"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "written", str(report.get("written", "unknown")).replace("T", " ")
    yield "sparse-adapt", str(report.get("version", "unknown"))
    yield "base model", _name(str(report["model"]))
    yield "corpus", _name(str(report["corpus"]))
    for stage in report["stages"][:1]:
        versions: Mapping[str, object] = stage.get("versions", {})
        others = [f"{name} {value}" for name, value in versions.items() if name != "sparse-adapt"]
        yield "made with", ", ".join(others)


def _read(subject: RunSubject) -> Iterator[Row]:
    for stage in subject.stages:
        files: Mapping[str, object] = {"model": stage.get("model", {}), **stage.get("files", {})}
        for what, entry in files.items():
            fields = entry if isinstance(entry, Mapping) else {"path": str(entry)}
            yield {
                "stage": str(stage.get("stage", "")),
                "what": what,
                "name": _name(str(fields.get("path", ""))),
                "sha256": str(fields.get("sha256", "")) or None,
            }


def _name(place: str) -> str:
    """A path by its last name: a page tells no folders of the machine that it was made on."""
    return Path(place).name or place


def _without_places(text: str, subject: RunSubject) -> str:
    """A run file with paths by their last names."""
    paths = {
        str(entry.get("path", "")) for stage in subject.stages for entry in stage.get("files", {}).values()
    }
    for path in sorted(
        {*paths, str(subject.report["model"]), str(subject.report["corpus"])}, key=len, reverse=True
    ):
        if Path(path).is_absolute():
            text = text.replace(json.dumps(path), json.dumps(_name(path)))
    return text
