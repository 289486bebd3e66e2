"""The share of a loss that comes back: by hand, with its interval, and through the command line."""

import json

import numpy as np
import pytest

from sparse_adapt.collection.readers import Document, Query, write_documents, write_judgements, write_queries
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.research.coin.coining import CoinSettings, replace_words
from sparse_adapt.plugins.research.coin.recovery import (
    measure_recovery,
    read_trial,
    recovered,
    resampled_means,
)
from sparse_adapt.retrieve.significance import interval, paired


def test_recovery_by_hand():
    floor, adapted, ceiling = np.array([0.0, 0.2]), np.array([0.5, 0.3]), np.array([0.8, 0.4])
    found = recovered(adapted, floor, ceiling)
    # means .1, .4, .6: (.4 - .1) / (.6 - .1)
    assert found.recovery is not None
    assert found.recovery.value == pytest.approx(0.6)
    # a resample holds only the first query, only the second, or both: .5 / .8, .1 / .2, .6
    assert (found.recovery.low, found.recovery.high) == pytest.approx((0.5, 0.625))
    assert (found.queries, found.floor, found.adapted, found.ceiling) == pytest.approx((2, 0.1, 0.4, 0.6))


def test_where_nothing_was_lost_there_is_nothing_to_recover():
    same = np.array([0.4, 0.6])
    assert recovered(same + 0.1, same, same + 0.005).recovery is None
    assert recovered(np.zeros(0), np.zeros(0), np.zeros(0)).queries == 0


def test_harm_is_below_zero_and_everything_is_one():
    floor, ceiling = np.full(9, 0.5), np.full(9, 1.0)
    for adapted, share in ((np.full(9, 0.25), -0.5), (ceiling, 1.0), (floor, 0.0)):
        found = recovered(adapted, floor, ceiling).recovery
        assert found is not None and found.value == found.low == found.high == pytest.approx(share)


def test_an_interval_holds_the_mean_and_that_of_pairs_is_of_their_differences():
    values = np.random.default_rng(0).random(200)
    found = interval(values)
    of_pairs = paired(values + 0.5, np.full(200, 0.5))
    assert (of_pairs.low, of_pairs.high) == pytest.approx((found.low, found.high))
    # standard error of a uniform variable's mean: sqrt(1 / 12 / 200) = .0204, 1.96 of them on either side
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.0204, rel=0.1)
    assert found.low < found.value < found.high


def test_resamples_keep_rows_together():
    values = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    first, second = resampled_means(values, np.random.default_rng(0))
    assert second == pytest.approx(2 * first)
    assert first.mean() == pytest.approx(2.0, abs=0.05)


@pytest.fixture(scope="module")
def trial_folders(tmp_path_factory):
    """A collection in which five texts say "enzyme", and its coined twin."""
    folder = tmp_path_factory.mktemp("trial")
    documents = [Document(f"d{n}", f"a report of the town number {n}") for n in range(40)]
    documents += [Document(f"p{n}", f"a report of the enzyme number {n}") for n in range(5)]
    write_documents(folder / "cells" / "corpus.jsonl", documents)
    write_queries(folder / "cells" / "queries.jsonl", [Query("q1", "enzyme"), Query("q2", "town number 3")])
    judged = {"q1": {f"p{n}": 1 for n in range(5)}, "q2": {"d3": 1}}
    write_judgements(folder / "cells" / "qrels" / "test.tsv", judged)
    replace_words(CoinSettings(collection=str(folder / "cells"), terms=1), set(), Place(folder / "coined"))
    return folder


@pytest.mark.slow
def test_the_base_model_loses_what_the_word_carried(trial_folders):
    base = SparseEncoder.load("splade-tiny")
    trial = read_trial(trial_folders / "coined")
    account = measure_recovery(base, base, trial)
    assert (account.said.queries, account.typed.queries, account.other.queries) == (1, 1, 1)
    assert account.said.floor < 0.5 * account.said.ceiling
    assert account.said.recovery is not None and account.said.recovery.value == 0
    assert account.typed.floor > account.said.floor
    assert account.other.recovery is None


def test_another_original_is_refused(trial_folders, zorvex_collection):
    with pytest.raises(InputError, match=r"isn't what .* was made from; name it: --original"):
        read_trial(trial_folders / "coined", original=str(zorvex_collection))


def test_a_split_without_carried_queries_is_refused(trial_folders):
    folder = trial_folders / "coined"
    for place in (folder, trial_folders / "cells"):
        write_judgements(place / "qrels" / "dev.tsv", {"q2": {"d3": 1}})
    with pytest.raises(InputError, match="no query of the split 'dev' held a replaced word"):
        read_trial(folder, "dev")


# -- commands -------------------------------------------------------------------------------------


def test_coin_and_recovery_as_commands(sparse_adapt, trial_folders, tiny_model, tmp_path):
    cells, out = trial_folders / "cells", tmp_path / "coined"
    status, shown, said = sparse_adapt(
        "coin", "--collection", cells, "--terms", 1, "-o", out, "--model", tiny_model, "--json"
    )
    assert status == 0, said
    (word,) = json.loads(shown)["coined"]
    assert word["word"] == "enzyme" and word["documents"] == 5
    assert f"sparse-adapt adapt {out} --model" in said

    words = ("recovery", "--coined", out, "--model", tiny_model, "--baseline", tiny_model, "--device", "cpu")
    status, shown, said = sparse_adapt(*words, "--json")
    assert status == 0, said
    assert json.loads(shown)["said"]["queries"] == 1
    status, shown, _ = sparse_adapt(*words)
    assert status == 0
    assert "say the real word" in shown and "with real words" in shown


def test_mistakes_are_one_line_and_leave_nothing(sparse_adapt, trial_folders, tiny_model, tmp_path):
    cells = trial_folders / "cells"
    for words, problem in (
        (("coin", "--collection", cells, "--terms", 5, "-o", tmp_path / "o"), "has 1 words to replace"),
        (("coin", "--collection", tmp_path / "no", "-o", tmp_path / "o"), "no such file"),
        (("coin", "--collection", cells, "-o", cells), "already there"),
        (("recovery", "--coined", cells, "--model", tiny_model), "holds no coined.json"),
    ):
        more = ("--model", tiny_model) if words[0] == "coin" else ()
        ran = sparse_adapt(*words, *more)
        assert (ran.status, ran.out) == (2, "")
        (line,) = ran.errors
        assert problem in line
    assert not list(tmp_path.iterdir())
