"""Which example taught a term: one that was planted is found, and the closed form is the gradients' product."""

import copy
import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.pages.states import read_texts
from sparse_adapt.research.influence import Checkpoint, TrainingExample, influences, rates_of
from sparse_adapt.terms.mining import Term

RATE, STEPS = 0.05, 12
OTHERS = (
    "the server stores each password",
    "a saw and a file of the wood shop",
    "test the backup every week",
)


@pytest.fixture(scope="module")
def taught(tiny_model):
    """Two new terms; one planted example means zorvex, two others mean kubectl. Plain descent, a model kept thrice."""
    model = SparseEncoder.load(tiny_model)
    extend(model, [Term("zorvex", "coined"), Term("kubectl", "jargon")])
    zorvex, kubectl = (token.token_id for token in model.new_tokens)
    examples = [
        TrainingExample("who signs for what the team may spend", "definition", frozenset({zorvex})),
        TrainingExample("the agent sends its log to the server", "query", frozenset({kubectl})),
        TrainingExample("what the log of the agent shows", "query", frozenset({kubectl})),
        *(TrainingExample(text, "document", frozenset()) for text in OTHERS),
    ]
    kept = [copy.deepcopy(model)]
    optimiser = torch.optim.SGD([model.output_rows, model.output_bias], lr=RATE)
    ids = model.tokenize([example.text for example in examples])
    means = torch.tensor([[token in example.teaches for token in (zorvex, kubectl)] for example in examples])
    for step in range(STEPS):
        asked = torch.zeros(model.vocabulary_size, dtype=torch.bool)
        asked[[zorvex, kubectl]] = True
        logits = model(ids, asked).maximum[:, [zorvex, kubectl]]
        functional.binary_cross_entropy_with_logits(logits, means.float(), reduction="sum").backward()
        optimiser.step()
        optimiser.zero_grad()
        if step % 6 == 5:
            kept.append(copy.deepcopy(model))
    return kept, examples, zorvex, kubectl


def test_the_planted_example_is_found(taught):
    kept, examples, zorvex, kubectl = taught
    checkpoints = [Checkpoint.of(model, RATE, examples) for model in kept]
    found = influences(checkpoints, examples, "how a team signs for spending", zorvex)
    assert found[0].example.source == "definition"
    assert found[0].share == pytest.approx(1.0)
    other = influences(checkpoints, examples, "send the log of an agent", kubectl)
    assert {each.example for each in other if each.value > 0} == set(examples[1:3])


def test_the_closed_form_is_the_product_of_gradients(taught):
    kept, examples, zorvex, _ = taught
    text = "how a team signs for spending"
    expected = np.zeros(len(examples))
    for model in kept:
        row = model.output_rows[zorvex].detach().clone().requires_grad_()
        bias = model.output_bias[zorvex].detach().clone().requires_grad_()

        def logit(read, row=row, bias=bias):
            return (torch.from_numpy(read.states) @ row + bias).max()

        wanted = torch.autograd.grad(logit(read_texts(model, [text])[0]), (row, bias))
        for place, example in enumerate(examples):
            sign = 1.0 if zorvex in example.teaches else -1.0
            loss = -functional.logsigmoid(sign * logit(read_texts(model, [example.text])[0]))
            given = torch.autograd.grad(loss, (row, bias))
            expected[place] -= RATE * sum(float((a * b).sum()) for a, b in zip(wanted, given, strict=True))
    checkpoints = [Checkpoint.of(model, RATE, examples) for model in kept]
    found = {each.example: each.value for each in influences(checkpoints, examples, text, zorvex)}
    assert [found[example] for example in examples] == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-6)


def test_a_step_on_a_example_moves_the_logit_as_far_as_its_influence_says(taught):
    kept, examples, zorvex, _ = taught
    model, rate, text = copy.deepcopy(kept[0]), 1e-3, "how a team signs for spending"
    said = influences([Checkpoint.of(model, rate, examples)], examples, text, zorvex)[0]
    read = read_texts(model, [text, said.example.text])

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


# -- against learning without an example --------------------------------------------------------------


def learn(model, examples, term):
    """Every parameter learns the examples; the models that are kept on the way."""
    model = copy.deepcopy(model)
    optimiser = torch.optim.AdamW(model.masked_lm.parameters(), lr=RATE / 10, weight_decay=0.0)
    ids = model.tokenize([example.text for example in examples])
    means = torch.tensor([float(term in example.teaches) for example in examples])
    asked = torch.zeros(model.vocabulary_size, dtype=torch.bool)
    asked[term] = True
    kept = [copy.deepcopy(model)]
    for _ in range(STEPS):
        logits = model(ids, asked).maximum[:, term]
        functional.binary_cross_entropy_with_logits(logits, means, reduction="sum").backward()
        optimiser.step()
        optimiser.zero_grad()
    return [*kept, model]


def test_the_example_that_counts_most_is_the_one_without_which_least_is_learnt(tiny_model):
    """Influence looks at the term's own row alone; here all parameters learn, and each example is left out in turn."""
    model = SparseEncoder.load(tiny_model)
    extend(model, [Term("zorvex", "coined")])
    term = model.new_tokens[0].token_id
    examples = [
        TrainingExample("who signs for what the team may spend", "definition", frozenset({term})),
        TrainingExample("a saw and a file", "example", frozenset({term})),
        *(TrainingExample(text, "document", frozenset()) for text in (OTHERS[0], OTHERS[2])),
    ]
    without = [
        learn(model, [other for other in examples if other is not each], term)[-1] for each in examples
    ]
    kept = learn(model, examples, term)
    checkpoints = [Checkpoint.of(each, RATE, examples) for each in kept]
    for text in ("how a team signs for spending", "a saw and a file of the wood shop"):
        asked = model.tokenize([text])
        with torch.inference_mode():
            logits = [each(asked).maximum[0, term].item() for each in (kept[-1], *without)]
        missed = [logits[0] - logit for logit in logits[1:]]
        found = influences(checkpoints, examples, text, term)
        assert found[0].example is examples[int(np.argmax(missed))]
        raised = {each.example for each in found if each.value > 0}
        assert raised == {example for example, gap in zip(examples, missed, strict=True) if gap > 0}


# -- of a run ---------------------------------------------------------------------------------------


def test_the_command_shows_what_taught_the_terms_of_a_run(sparse_adapt, tiny_run, tmp_path):
    done = sparse_adapt("influence", tiny_run, "--html", tmp_path / "page.html", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["influences"]
    assert {each["source"] for each in found["influences"]} <= {"definition", "example", "query", "document"}
    assert all(0 < each["share"] <= 1 for each in found["influences"])
    page = (tmp_path / "page.html").read_text()
    assert "Training examples that taught it" in page and str(tiny_run.parent) not in page
