"""Definitions in other words."""

import hashlib

import numpy as np
import pytest

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.synthetic import labels as module
from sparse_adapt.synthetic.labels import WORD, reworded

DEFINITIONS = [
    Definition("zorvex", "the system in which employees file their travel expenses"),
    Definition("mubrithal", "the robot that fetches boxes from the shelves of the storehouse"),
]


class Alike:
    """A dense encoder to which words that begin with the same letter are alike."""

    def encode(self, texts):
        return np.array([self._of(text) for text in texts], np.float32)

    def _of(self, text):
        letters = np.bincount([ord(word[0]) % 128 for word in WORD.findall(text)], minlength=128)
        noise = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 97 / 1e4
        vector = np.append(letters, noise)
        return vector / np.linalg.norm(vector)


def test_each_telling_word_gives_way_to_one_that_no_text_uses(monkeypatch):
    monkeypatch.setattr(module, "COMMON", 2_000)
    found = reworded(DEFINITIONS, Alike(), seed=0)
    assert [each.term for each in found] == ["zorvex"] * 3 + ["mubrithal"] * 3
    for each in found:
        definition = next(d.definition for d in DEFINITIONS if d.term == each.term)
        telling = {word for word in definition.split() if len(word) > 5}
        assert telling and not telling & set(each.text.split())
        assert len(each.text.split()) == len(definition.split()), "a word for a word"
    assert found == reworded(DEFINITIONS, Alike(), seed=0)
    assert reworded([], Alike(), seed=0) == []


@pytest.mark.parametrize("definition", ["the of and", "犬 猫"])
def test_a_definition_without_common_words_gives_no_text(monkeypatch, definition):
    monkeypatch.setattr(module, "COMMON", 500)
    assert reworded([Definition("zorvex", definition)], Alike(), seed=0) == []
