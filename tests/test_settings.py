"""Every setting is explained where it stands, in one place."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sparse_adapt.errors import ConfigError
from sparse_adapt.pipeline.plan import make_plan, plan_text, presets, settings_for
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.table import find_stage, trained


def fields(kind: type[BaseModel], before: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key of a table and of the tables within, with what is known of it."""
    for name, field in kind.model_fields.items():
        yield before + name, field
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            yield from fields(type(default), f"{before}{name}.")


TABLES = {**{name: find_stage(name).settings for name in trained()}, "adapt": AdaptSettings}


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_explained(table):
    for key, field in fields(TABLES[table]):
        assert field.description, f"{table}.{key}"
        assert field.description[0].isupper(), f"{table}.{key}"
        assert field.description.endswith("."), f"{table}.{key}"


def test_a_key_that_moves_its_default_keeps_its_meaning_and_unit():
    class Above(Settings):
        depth: int = setting(3, "How deep it is.", unit="metres", source="a book", ge=1)

    class Below(Above):
        depth: int = setting(5, ge=1)

    field = Below.model_fields["depth"]
    assert (field.default, field.description) == (5, "How deep it is.")
    assert field.json_schema_extra == {"unit": "metres", "source": "a book"}


def test_bounds_are_kept():
    class Table(Settings):
        share: float = setting(0.5, "A share.", gt=0, le=1)

    for value in (0.0, 1.5):
        with pytest.raises(ValueError, match="share"):
            Table(share=value)
    assert Table(share=1.0).share == 1.0


@pytest.mark.parametrize("name", presets())
def test_a_preset_holds_settings_of_the_stages_that_have_it_and_no_other_takes_it(name):
    for stage in trained():
        if name in ("default", *find_stage(stage).presets):
            assert isinstance(settings_for(stage, name), find_stage(stage).settings)
            differs = bool(find_stage(stage).presets.get(name))
            assert (settings_for(stage, name) != settings_for(stage)) == differs
        else:
            with pytest.raises(ConfigError, match=f"{stage}: has no preset '{name}'"):
                settings_for(stage, name)


def test_what_is_settled_later_is_called_auto_and_kept_as_none():
    for given in ({}, {"steps": None}, {"steps": "auto"}):
        assert settings_for("dictionary", "default", given).steps is None
    assert settings_for("dictionary").model_dump(mode="json")["steps"] is None  # as in records of any version
    assert settings_for("warmup", "default", {"device": "auto"}).device == "auto"
    with pytest.raises(ConfigError, match="batch_size should be a valid integer"):
        settings_for("warmup", "default", {"batch_size": "auto"})


def test_a_name_stands_for_itself():
    class Table(Settings):
        corpus: str | None = setting(None, "Where the documents are.")

    assert Table(corpus="auto").corpus == "auto"


def test_a_written_plan_says_auto_and_reads_back(tmp_path):
    plan = make_plan("gatrocraptic")
    text = plan_text(plan)
    assert 'steps = "auto"' in text.split("[dictionary]")[1]
    path = tmp_path / "run.toml"
    path.write_text(text)
    assert read_plan(path) == plan


def test_settings_come_back_from_a_file():
    plain = AdaptSettings().model_dump_json()
    assert AdaptSettings.model_validate_json(plain) == AdaptSettings()
    with pytest.raises(ValueError, match="interpolations"):
        AdaptSettings.model_validate_json('{"interpolations": "0.5"}')
