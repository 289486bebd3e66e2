"""Which lesson taught a term: one that was planted is found, and the closed form is the gradients' product."""

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.pages.influence import Checkpoint, Lesson, influences, rates_of
from sparse_adapt.pages.states import read_texts
from sparse_adapt.terms.mining import Term

RATE, STEPS = 0.05, 12
OTHERS = (
    "the server stores each password",
    "a saw and a file of the wood shop",
    "test the backup every week",
)


@pytest.fixture(scope="module")
def taught(tiny_model):
    """Two new terms; one planted lesson means zorvex, two others mean kubectl. Plain descent, a model kept thrice."""
    model = SparseEncoder.load(tiny_model)
    extend(model, [Term("zorvex", "coined"), Term("kubectl", "jargon")])
    zorvex, kubectl = (token.token_id for token in model.new_tokens)
    lessons = [
        Lesson("who signs for what the team may spend", "definition", frozenset({zorvex})),
        Lesson("the agent sends its log to the server", "query", frozenset({kubectl})),
        Lesson("what the log of the agent shows", "query", frozenset({kubectl})),
        *(Lesson(text, "document", frozenset()) for text in OTHERS),
    ]
    kept = [copy.deepcopy(model)]
    optimiser = torch.optim.SGD([model.output_rows, model.output_bias], lr=RATE)
    ids = model.tokenize([lesson.text for lesson in lessons])
    means = torch.tensor([[token in lesson.teaches for token in (zorvex, kubectl)] for lesson in lessons])
    for step in range(STEPS):
        asked = torch.zeros(model.vocabulary_size, dtype=torch.bool)
        asked[[zorvex, kubectl]] = True
        logits = model(ids, asked).maximum[:, [zorvex, kubectl]]
        functional.binary_cross_entropy_with_logits(logits, means.float(), reduction="sum").backward()
        optimiser.step()
        optimiser.zero_grad()
        if step % 6 == 5:
            kept.append(copy.deepcopy(model))
    return kept, lessons, zorvex, kubectl


def test_the_planted_lesson_is_found(taught):
    kept, lessons, zorvex, kubectl = taught
    checkpoints = [Checkpoint.of(model, RATE, lessons) for model in kept]
    found = influences(checkpoints, lessons, "how a team signs for spending", zorvex)
    assert found[0].lesson.source == "definition"
    assert found[0].share == pytest.approx(1.0)
    other = influences(checkpoints, lessons, "send the log of an agent", kubectl)
    assert {each.lesson for each in other if each.value > 0} == set(lessons[1:3])


def test_the_closed_form_is_the_product_of_gradients(taught):
    kept, lessons, zorvex, _ = taught
    text = "how a team signs for spending"
    expected = np.zeros(len(lessons))
    for model in kept:
        row = model.output_rows[zorvex].detach().clone().requires_grad_()
        bias = model.output_bias[zorvex].detach().clone().requires_grad_()

        def logit(read, row=row, bias=bias):
            return (torch.from_numpy(read.states) @ row + bias).max()

        wanted = torch.autograd.grad(logit(read_texts(model, [text])[0]), (row, bias))
        for place, lesson in enumerate(lessons):
            sign = 1.0 if zorvex in lesson.teaches else -1.0
            loss = -functional.logsigmoid(sign * logit(read_texts(model, [lesson.text])[0]))
            given = torch.autograd.grad(loss, (row, bias))
            expected[place] -= RATE * sum(float((a * b).sum()) for a, b in zip(wanted, given, strict=True))
    checkpoints = [Checkpoint.of(model, RATE, lessons) for model in kept]
    found = {each.lesson: each.value for each in influences(checkpoints, lessons, text, zorvex)}
    assert [found[lesson] for lesson in lessons] == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-6)


def test_a_step_on_a_lesson_moves_the_logit_as_far_as_its_influence_says(taught):
    kept, lessons, zorvex, _ = taught
    model, rate, text = copy.deepcopy(kept[0]), 1e-3, "how a team signs for spending"
    said = influences([Checkpoint.of(model, rate, lessons)], lessons, text, zorvex)[0]
    read = read_texts(model, [text, said.lesson.text])

    def logits(read):
        return torch.from_numpy(read.states) @ row + bias

    row, bias = model.output_rows[zorvex].detach().clone(), model.output_bias[zorvex].detach().clone()
    before = float(logits(read[0]).max())
    row.requires_grad_()
    bias.requires_grad_()
    (-functional.logsigmoid(logits(read[1]).max())).backward()
    with torch.no_grad():
        row, bias = row - rate * row.grad, bias - rate * bias.grad
        assert float(logits(read[0]).max()) - before == pytest.approx(said.value, rel=0.05)


def test_extend_takes_the_rate_of_the_stage_after_it():
    stages = [
        {"settings": {}},
        {"settings": {"new_learning_rate": 0.01}},
        {"settings": {"new_learning_rate": 0.001}},
    ]
    assert rates_of(stages) == [0.01, 0.01, 0.001]
    assert rates_of([{}]) == [1.0]
