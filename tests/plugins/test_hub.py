"""Models and term packs go to the Hub and come back by huggingface_hub; what goes wrong there is one line."""

import shutil
import sys
import time

import pytest
from forking import fork
from small_hub import TOKEN, SmallHub, small_hub

import sparse_adapt as sa
from sparse_adapt import cli


@pytest.fixture
def hub():
    with small_hub() as served:
        yield served


@pytest.fixture(scope="module")
def made(tiny_model, tmp_path_factory):
    """A folder with an extended model and a pack of its terms."""
    folder = tmp_path_factory.mktemp("hub")
    sa.train("extend", tiny_model, out=folder / "model", terms=["zorvex", "kubectl"])
    sa.pack(folder / "model", folder / "words.pack", base=tiny_model, author="tests")
    return folder


@pytest.fixture
def ran(hub, tmp_path):
    """A command in a process of its own, whose huggingface_hub asks the small Hub: status and what it says."""
    asks = {"HF_ENDPOINT": hub.address, "HF_HOME": tmp_path / "home", "HF_HUB_DISABLE_XET": 1}
    asks |= {"HF_HUB_DISABLE_PROGRESS_BARS": 1}

    def run(*words, token=TOKEN):
        return fork(lambda: command(list(map(str, words))), **asks, HF_TOKEN=token).wait()

    return run


def command(words):
    for name in [name for name in sys.modules if name.split(".")[0] == "huggingface_hub"]:
        del sys.modules[name]  # which read the environment when they were imported
    time.sleep = lambda _: None  # before another try
    sys.argv = ["sparse-adapt", *words]
    cli.main()


def test_a_model_comes_back_with_the_same_vectors(hub, ran, made, tmp_path):
    status, said = ran("push", made / "model", "owner/words", "--private")
    assert status == 0, said
    files = hub.repositories["owner/words"]
    assert hub.private == {"owner/words"} and hub.commits == {"owner/words": 1}
    sizes = {name: len(content) for name, content in files.items() if name != ".gitattributes"}
    assert all(f"  {name}  {size:,} bytes" in said for name, size in sizes.items())  # all below 0.1 MB
    assert f"pushing {len(sizes)} files, " in said and "a private repository owner/words" in said
    assert {"README.md", "model.safetensors", "tokenizer.json", "vocabulary.json"} <= files.keys()
    assert not {"stage.json", "sparse-adapt.json"} & files.keys()
    assert not [name for name, content in files.items() if str(made).encode() in content]
    (tmp_path / "texts.jsonl").write_text('{"_id": "1", "text": "zorvex reports"}\n')
    for model, place in {"hub:owner/words": "there", made / "model": "here"}.items():
        words = (
            "--device",
            "cpu",
            "--model",
            model,
            "--corpus",
            tmp_path / "texts.jsonl",
            "-o",
            tmp_path / place,
        )
        status, said = ran("encode", *words)
        assert status == 0, said
    there, here = [(tmp_path / place / "shard-00000.safetensors").read_bytes() for place in ("there", "here")]
    assert there == here


STRANGE = [
    *(
        "extra.json",
        "vocab.old",
        "secrets.model",
        ".config.json",
        ".cache/config.json",
        "model-mine.safetensors",
    ),
    *("notes/config.json", "deep/in/config.json", "packs/zorvex.json", "credentials.json"),
]


def test_only_names_that_loading_reads_leave_the_folder(hub, ran, made, tmp_path):
    folder, outside = tmp_path / "model", tmp_path / "id_rsa"
    shutil.copytree(made / "model", folder)
    outside.write_text("a secret")
    for name in STRANGE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a secret")
    (folder / "extra.txt").symlink_to(outside)
    status, said = ran("push", folder, "owner/words")
    assert status == 0, said
    assert not [name for name, content in hub.repositories["owner/words"].items() if b"a secret" in content]
    status, said = ran("push", made / "model", "owner/same")
    assert status == 0 and hub.repositories["owner/same"].keys() == hub.repositories["owner/words"].keys()


@pytest.mark.parametrize("name", ["README.md", "vocab.txt", "1_SpladePooling/config.json", "1_SpladePooling"])
def test_a_link_that_leads_out_of_a_model_is_refused(hub, ran, made, tmp_path, name):
    folder, outside = tmp_path / "model", tmp_path / "outside"
    shutil.copytree(made / "model", folder)
    outside.mkdir()
    (outside / "config.json").write_text('{"a": "secret"}')
    path = folder / name
    target = outside if "." not in name else outside / "config.json"
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.symlink_to(target)
    status, said = ran("push", folder, "owner/words")
    assert status == 2 and "is a link that leads out of the model's folder; put the file itself there" in said
    assert hub.repositories == {}


def test_a_link_within_a_model_and_a_model_of_the_hubs_cache_are_pushed(hub, ran, made, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(made / "model", folder)
    (folder / "README.md").rename(folder / "card")
    (folder / "README.md").symlink_to("card")
    assert ran("push", folder, "owner/words")[0] == 0
    status, said = ran("push", "hub:owner/words", "owner/again")
    assert status == 0, said
    assert hub.repositories["owner/again"] == hub.repositories["owner/words"]


def test_a_token_that_the_hub_repeats_is_never_printed(hub, ran, made):
    hub.refuse, hub.repeats = 403, True
    status, said = ran("push", made / "model", "owner/words")
    assert status == 2 and "Bearer ..." in said
    assert TOKEN[:8] not in said


def test_pushing_again_replaces_what_loading_reads(hub, ran, made):
    kept = {".gitattributes": b"", "notes.txt": b"mine", "model-00001-of-00002.safetensors": b"old"}
    hub.repositories["owner/words"], hub.commits["owner/words"] = dict(kept), 1
    status, said = ran("push", made / "model", "owner/words")
    assert status == 2 and "is there already (3 files)" in said and "--overwrite" in said
    assert hub.repositories["owner/words"] == kept
    status, said = ran("push", made / "model", "owner/words", "--overwrite")
    assert status == 0, said
    assert {"notes.txt", "model.safetensors"} <= hub.repositories["owner/words"].keys()
    assert "model-00001-of-00002.safetensors" not in hub.repositories["owner/words"]


def test_a_pack_comes_back(hub, ran, made, tiny_model, tmp_path):
    status, said = ran("push", made / "words.pack", "hub:owner/pack")
    assert status == 0, said
    assert hub.repositories["owner/pack"]["words.pack"] == (made / "words.pack").read_bytes()
    assert b"`zorvex`, `kubectl`" in hub.repositories["owner/pack"]["README.md"]
    status, said = ran("packs", "hub:owner/pack")
    assert status == 0 and "zorvex, kubectl" in said
    status, said = ran("unpack", "hub:owner/pack", "--model", tiny_model, "-o", tmp_path / "with")
    assert status == 0, said
    assert sa.load(tmp_path / "with", device="cpu").terms == ["zorvex", "kubectl"]
    hub.repositories["owner/pack"].pop("words.pack")
    hub.commits["owner/pack"] += 1
    status, said = ran("unpack", "hub:owner/pack", "--model", tiny_model, "-o", tmp_path / "none")
    assert status == 2 and "hub:owner/pack: holds no term pack" in said


def refusing(hub: SmallHub) -> None:
    hub.refuse = 403


def cutting(part: str):
    def cut(hub: SmallHub) -> None:
        hub.cut = part

    return cut


def seen_by_all(hub: SmallHub) -> None:
    hub.repositories["owner/words"], hub.commits["owner/words"] = {}, 0


@pytest.mark.parametrize(
    ("prepare", "words", "token", "told"),
    [
        (lambda _: None, (), "", "no token of the Hub; make one there that may write"),
        (
            lambda _: None,
            (),
            "hf_another",
            "(Invalid username or password.); give a token that may write there",
        ),
        (refusing, (), TOKEN, "(You don't have the rights to write to this namespace); give a token"),
        (seen_by_all, ("--private",), TOKEN, "everybody sees it, so --private can't be"),
        (cutting("/preupload/"), (), TOKEN, "check the connection and run it again"),
        (cutting("/lfs/"), (), TOKEN, "check the connection and run it again"),
        (cutting("/commit/"), (), TOKEN, "check the connection and run it again"),
    ],
)
def test_what_goes_wrong_is_one_line_and_leaves_nothing(hub, ran, made, prepare, words, token, told):
    prepare(hub)
    status, said = ran("push", made / "model", "owner/words", *words, token=token)
    assert status == 2 and told in said, said
    assert said.strip().splitlines()[-1].startswith("error: ") and "Traceback" not in said
    assert not hub.repositories.get("owner/words", {}).keys() - {".gitattributes"}
    hub.refuse, hub.cut = 0, ""
    if words == ():
        status, said = ran("push", made / "model", "owner/words")
        assert status == 0, said


@pytest.mark.parametrize("part", ["/tree/", "/model.safetensors"])
def test_a_download_that_breaks_is_one_line(hub, ran, made, part):
    assert ran("push", made / "model", "owner/words")[0] == 0
    hub.cut = part
    status, said = ran("diagnose", "--model", "hub:owner/words")
    assert status == 2 and "Traceback" not in said, said
    assert "error: hub:owner/words: the Hub didn't give it (" in said.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("a/b/c",), "a/b/c: is no name of a repository; give OWNER/NAME"),
        (("../b",), "is no name of a repository"),
    ],
)
def test_odd_names_are_refused(ran, made, words, told):
    status, said = ran("push", made / "model", *words)
    assert (status, len(said.strip().splitlines())) == (2, 1) and told in said


def test_a_run_is_no_model(ran, made):
    status, said = ran("push", made, "owner/words")
    assert status == 2 and f"holds no model; did you mean {made / 'model'}?" in said
