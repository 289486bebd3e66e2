"""Formulas of docs/method.md that are no loss term, each by hand; and the tests that the pages name for the others."""

import math
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn, tensor
from torch.testing import assert_close

from sparse_adapt.model.idf import fourth_root, shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.meanings import recall
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.objectives.token_scales import LearntScales
from sparse_adapt.selection.models import merge
from sparse_adapt.synthetic.windows import Samples
from sparse_adapt.terms.evidence import RAREST, _evidence
from sparse_adapt.terms.words import Count, Word
from sparse_adapt.training.shared_steps import SharedFeatures, SharedSteps

ROOT = Path(__file__).parents[1]


def test_the_gain_of_a_term():
    count = Count()
    count.add(1)
    count.add(8)  # in a second document, where repeats count for less
    assert count.support == pytest.approx(1 + 1 + math.log(8))
    word = Word("zorvexian", ("zorvexian",), Count(10, 4, 6.0))
    # 6 times of 12 nats before and 1 of 100 now, less one spelling and half the logarithm of 1,000
    expected = 6 * (12 + math.log(0.01)) - (12 + math.log(1_000) / 2)
    assert _evidence(word, word.count, 12.0, ("zo",), 1_000).gain == pytest.approx(expected, abs=0.005)
    # general language costs less than 50 nats in pieces
    expected = 6 * (-math.log(RAREST) + math.log(0.01)) - (-math.log(RAREST) + math.log(1_000) / 2)
    assert _evidence(word, word.count, 50.0, ("zo",), 1_000).gain == pytest.approx(expected, abs=0.005)


def test_the_wanted_logit_rises_with_similarity_margin_between_two_bounds():
    targets = Targets(threshold=4.0, slope=40.0, unrelated=-4.0, meaning=8.0)
    nothing = torch.zeros(3, 1, dtype=torch.bool)
    samples = Samples([[1], [2], [3]], nothing, nothing, tensor([[0.05], [0.5], [-0.3]]))
    # 4 + 40 x .05 = 6, then 24 and -8 at the bounds 8 and -4
    assert recall(tensor([[6.0], [8.0], [-4.0]]), samples, targets, 1.0) == 0.0
    assert recall(tensor([[6.0], [99.0], [-99.0]]), samples, targets, 1.0) == 0.0  # beyond the bounds is free
    # 2 too low: Huber's 1.5, of a logit that counts 6 beside one that counts 8
    assert_close(recall(tensor([[4.0], [8.0], [-4.0]]), samples, targets, 1.0), tensor(1.5 * 6 / 14))


def test_a_model_between_two_has_the_weights_between(tiny_model):
    after, before = (SparseEncoder.load(tiny_model) for _ in range(2))
    with torch.no_grad():
        after.output_rows.fill_(1.0)
        before.output_rows.fill_(5.0)
    assert_close(merge(before, after, 0.25).output_rows, torch.full_like(after.output_rows, 2.0))


def test_words_share_a_step_by_their_features():
    rows = nn.Parameter(torch.zeros(3, 2))
    shared = SharedSteps(rows, SharedFeatures(tensor([0, 2]), tensor([[1.0], [2.0]]), 0.1))
    rows.grad = tensor([[3.0, 0.0], [9.0, 9.0], [0.5, 1.0]])
    shared.collect()
    # the map's gradient: 1 x (3, 0) + 2 x (.5, 1); the second row has no features
    assert_close(shared.map.grad, tensor([[4.0, 2.0]]))
    with torch.no_grad():
        shared.map += tensor([[1.0, -1.0]])
    shared.put_back()
    assert_close(rows.detach(), tensor([[1.0, -1.0], [0.0, 0.0], [2.0, -2.0]]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("texts", range(9, 50))
def test_a_token_of_every_text_counts_nothing(texts: int):
    shares = shares_of(csr_matrix(np.ones((texts, 1))))  # a mean is more than 1 for 9 texts, 11, 18
    assert fourth_root(csr_matrix(np.ones((7, 1))), shares) == [0.0]


def test_scales_begin_as_fourth_roots_and_learn_as_logarithms():
    # four documents: two have the first token, none the second, all the third; idf ln(5/3), ln 5, ln 1
    weights = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [3.0, 0.0, 1.0], [0.0, 0.0, 4.0]], np.float32)
    start = fourth_root(csr_matrix(weights))
    assert start.tolist() == pytest.approx([math.log(5 / 3) ** 0.25, math.log(5) ** 0.25, 0.0])
    token_scales = LearntScales(start, 0.1)
    with torch.no_grad():
        token_scales.gain.copy_(tensor([math.log(2.0), 0.0, 5.0]))
    learnt = [2 * math.log(5 / 3) ** 0.25, math.log(5) ** 0.25, 0.0]
    assert token_scales.values.tolist() == pytest.approx(learnt)
    counted = token_scales(tensor([[3.0, 2.0, 1.0]])).detach()[0].tolist()
    assert counted == pytest.approx([3 * learnt[0], 2 * learnt[1], 0.0])


@pytest.mark.plugins("research")
@pytest.mark.parametrize("page", ["method.md", "published.md"])
def test_each_formula_has_the_code_and_the_test_that_its_page_names(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = re.findall(r"\| `([\w.]+):(\w+)` \| `(test_\w+)\.py::(\w+)` \|", text)
    assert len(rows) >= 30 and len(rows) == text.count(".py::")
    for module, name, tests, test in rows:
        place = module if module.startswith("diagnostics") else f"sparse_adapt.{module}"
        assert hasattr(import_module(place), name), f"{place}:{name}"
        (file,) = (ROOT / "tests").rglob(f"{tests}.py")
        source = file.read_text(encoding="utf-8")
        assert re.search(rf"^(def|class) {test}\b", source, re.MULTILINE), f"{tests}.py::{test}"
