"""The bundle for ML Commons: what the zip file holds weighs texts as the model does."""

import json
import subprocess
import zipfile

import pytest
import torch
from scaled import with_scales
from tokenizers import Tokenizer

from sparse_adapt.errors import ModelError
from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.engines import opensearch_model
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.manifest import read_export, read_export_manifest
from sparse_adapt.plugins.engines.opensearch_model import CONFIG_FILE, ZIP_FILE, how_to_load
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.shards import encode_vectors


@pytest.fixture(scope="module")
def model(tiny_model):
    return with_scales(tiny_model)


def source_of(model):
    return ExportSource(encode_vectors(model, [], model_name="tiny"), encoder=model)


@pytest.fixture(scope="module")
def bundle(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "out"
    write_export("opensearch-model", source_of(model), Place(folder))
    return folder


def test_what_the_zip_file_holds_weighs_texts_as_the_model_does(model, bundle, twelve_documents, tmp_path):
    with zipfile.ZipFile(bundle / ZIP_FILE) as archive:
        assert archive.namelist() == ["model.pt", "tokenizer.json"]
        archive.extractall(tmp_path)
    script, tokenizer = (
        torch.jit.load(tmp_path / "model.pt"),
        Tokenizer.from_file(str(tmp_path / "tokenizer.json")),
    )
    texts = [document.full_text for document in twelve_documents] + ["server " * 500]
    expected = encode(model, texts, "document").toarray()
    expected[:, model.tokenizer.all_special_ids] = 0
    for text, weights in zip(texts, expected, strict=True):
        encoding = tokenizer.encode(text)
        inputs = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        assert len(encoding.ids) <= model.max_tokens
        output = script({name: torch.tensor([values]) for name, values in inputs.items()})["output"]
        assert output[0].tolist() == pytest.approx(weights.tolist(), abs=1e-5)


def test_the_configuration_vouches_for_the_zip_file(bundle):
    config = json.loads((bundle / CONFIG_FILE).read_text())
    content = (bundle / ZIP_FILE).read_bytes()
    assert config["model_content_hash_value"] == checksum_of_bytes(content)
    assert config["model_content_size_in_bytes"] == len(content)
    assert (config["name"], config["model_format"]) == ("tiny", "TORCH_SCRIPT")
    assert config["function_name"] == "SPARSE_ENCODING"


def test_the_manifest_says_how_close_it_is_and_which_names_differ(model, bundle):
    manifest = read_export_manifest(bundle, "opensearch-model")
    assert 0 <= manifest.facts["largest_difference"] < 1e-5
    assert manifest.facts["renamed_tokens"] == 0  # WordPiece decodes "##ing" to "##ing"
    assert model.device.type == "cpu"


def test_a_script_that_weighs_otherwise_is_not_kept(model, tmp_path, monkeypatch):
    monkeypatch.setattr(opensearch_model, "largest_difference", lambda *_: 0.5)
    with pytest.raises(ModelError, match=r"tiny: TorchScript's weights differ from torch's by 5\.0e-01"):
        write_export("opensearch-model", source_of(model), Place(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_the_printed_commands_register_the_configuration_with_its_url(bundle):
    lines = how_to_load(read_export(bundle)).splitlines()
    script = "\n".join(line for line in lines if "curl" not in line).rstrip("|")
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True)
    configuration = json.loads((bundle / CONFIG_FILE).read_text())
    assert json.loads(done.stdout) == configuration | {"url": "https://example.org/model.zip"}
