"""How much exact words count where nobody says it. Nothing loads with this module."""

SHARE = 0.7  # part of words in a score, where the index holds other texts as well
ONLY_DOMAIN = 1.0  # the same where the index holds nothing but the corpus
TITLE = 1.0  # what a word of a title counts once more
PIECES = 1.3  # how much more a word counts that the tokenizer cuts
HEAVIEST = 64  # weights of the model that a document keeps
