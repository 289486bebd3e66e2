"""The Hub, by huggingface_hub: names such as `hub:owner/name`, files fetched from there, and files pushed to it.

Files are pushed in one commit, so that a connection that breaks leaves nothing behind that anybody could load. A
repository holds one model or one term pack: pushing again removes files of the kinds that are loaded and aren't pushed.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from sparse_adapt import __version__
from sparse_adapt.errors import ConfigError, ModelError, OutputError, first_line, without

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ON_THE_HUB = "hub:"
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # after `hub:`
LOADED = (
    *("config.json", "generation_config.json", "model.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "tokenizer.model"),
    *("sentencepiece.model", "sentencepiece.bpe.model"),
    *("modules.json", "router_config.json", "config_sentence_transformers.json"),
    *(f"sentence_{family}_config.json" for family in ("bert", "roberta", "distilbert", "camembert")),
    *(f"sentence_{family}_config.json" for family in ("albert", "xlm-roberta", "xlnet")),
    *("vocabulary.json", "entries.json", "exact_words.json", "token_scales.json"),
    *("defined_words.json", "defined_words.safetensors"),
    *("idf.json", "query_token_weights.txt"),
    *("masked_words.safetensors", "README.md"),
)
PARTS = "model-?????-of-?????.safetensors"  # of weights in several files
MODEL_FILES = [each for name in (*LOADED, PARTS) for each in (name, f"*/{name}")]
OTHER_FORMATS = ["onnx/*", "openvino/*"]  # of the same model
PACK_FILES = ["*.pack"]
MADE_BY_THE_HUB = {".gitattributes"}
LOG_IN = "by `hf auth login` or the variable HF_TOKEN"


def hub_id_in(source: str) -> str:
    """The id of a model on the Hub, which `hub:` stands before; empty for anything else."""
    hub_id = source.removeprefix(ON_THE_HUB)
    return hub_id if source.startswith(ON_THE_HUB) and HUB_ID.fullmatch(hub_id) else ""


def is_loaded(name: str) -> bool:
    """Whether loading a model or a pack from the Hub reads a file of that name."""
    return any(fnmatchcase(name, pattern) for pattern in (*MODEL_FILES, *PACK_FILES)) and not any(
        fnmatchcase(name, pattern) for pattern in OTHER_FORMATS
    )


def fetch(hub_id: str, files: Sequence[str]) -> Path:
    """A folder with the files of a repository that fit a pattern, from the Hub or its local cache.

    Raises ModelError where they can't be had.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined] # of the client that it uses

    try:
        return Path(snapshot_download(hub_id, allow_patterns=list(files), ignore_patterns=OTHER_FORMATS))
    except (OSError, ValueError, HTTPError) as error:
        raise ModelError(
            f"{ON_THE_HUB}{hub_id}: the Hub didn't give it ({_told(error)}); "
            "check the name and the connection, or give a folder or the alias splade-tiny"
        ) from error


def check_pushable(hub_id: str, private: bool, overwrite: bool) -> list[str] | None:
    """The files of a repository that may be pushed to; None where it has to be made first.

    Raises ConfigError without a token, OutputError for a repository that holds something and isn't to be overwritten,
    and for one that everybody sees where nobody shall.
    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HTTPError, RepositoryNotFoundError  # type: ignore[attr-defined]

    if get_token() is None:
        raise ConfigError(f"no token of the Hub; make one there that may write, and give it {LOG_IN}")
    try:
        info = _api(HfApi).model_info(hub_id)
    except RepositoryNotFoundError:
        return None
    except (OSError, ValueError, HTTPError) as error:
        raise _refused(hub_id, error) from error
    files = [each.rfilename for each in info.siblings or ()]
    if not overwrite and set(files) - MADE_BY_THE_HUB:
        raise OutputError(
            f"{ON_THE_HUB}{hub_id}: is there already ({len(files):,} files); choose another name, or replace its "
            "files with --overwrite: earlier ones stay in its history"
        )
    if private and not info.private:
        raise OutputError(
            f"{ON_THE_HUB}{hub_id}: everybody sees it, so --private can't be; choose another name"
        )
    return files


def push(
    hub_id: str, files: Mapping[str, Path | bytes], files_there: Sequence[str] | None, private: bool
) -> None:
    """Put files into a repository, by their names there, in one commit. `files_there`: its files; None makes it.

    Raises OutputError where the Hub refuses them, or can't be reached; then none of them is there.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    gone = [name for name in files_there or () if name not in files and is_loaded(name)]
    changes: list[CommitOperationAdd | CommitOperationDelete] = [
        *(
            CommitOperationAdd(name, str(each) if isinstance(each, Path) else each)
            for name, each in files.items()
        ),
        *(CommitOperationDelete(name) for name in gone),
    ]
    try:
        if files_there is None:
            _api(HfApi).create_repo(hub_id, private=private)
        _api(HfApi).create_commit(hub_id, changes, commit_message=f"Push by sparse-adapt {__version__}")
    except (OSError, ValueError, RuntimeError, HTTPError) as error:
        raise _refused(hub_id, error) from error


def _api(kind: "type[HfApi]") -> "HfApi":
    return kind(library_name="sparse-adapt", library_version=__version__)


def _refused(hub_id: str, error: Exception) -> OutputError:
    """Why nothing was pushed: a token that may not, or a connection that broke. The token itself is never told."""
    from huggingface_hub.errors import HfHubHTTPError

    cause = (
        error.__cause__
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception)
        else error
    )
    answer = cause if isinstance(cause, HfHubHTTPError) else None
    message = (answer.server_message if answer else None) or cause
    status = answer.response.status_code if answer else None
    advice = (
        f"give a token that may write there, {LOG_IN}"
        if status in (401, 403)
        else "check the connection and run it again"
    )
    return OutputError(
        f"{ON_THE_HUB}{hub_id}: the Hub took nothing ({_told(message)}); {advice}",
    )


def _told(answer: object) -> str:
    """The first line of what the Hub says, without the token that it may repeat."""
    from huggingface_hub import get_token

    return first_line(without(get_token() or "", str(answer) or type(answer).__name__))
