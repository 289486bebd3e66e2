"""Tokens that hold a sentence together and say nothing of its topic: punctuation and English stop words."""

import unicodedata

import numpy as np
from numpy.typing import NDArray
from tokenizers.decoders import ByteLevel
from transformers import PreTrainedTokenizerFast

CONTINUES = "##"  # WordPiece: inside a word, so `##the` is not "the"
STARTS = "\u0120\u2581"  # byte-level BPE (space as a letter) and SentencePiece: the start of a word

DETERMINERS = (
    "a an the this that these those each every either neither some any no all both half such another"
)
PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    one oneself who whom whose which what whatever whoever whichever something anything nothing everything
    someone anyone everyone somebody anybody nobody everybody none there here
"""
PREPOSITIONS = """
    of in on at by for with from to into onto upon about above across after against along among around as
    before behind below beneath beside besides between beyond despite down during except inside like near
    off out outside over past per since through throughout till toward towards under until up via within
    without
"""
CONJUNCTIONS = """
    and or but nor so yet if then else than because although though while whereas unless whether where when
    why how once
"""
AUXILIARIES = """
    be am is are was were been being do does did doing done have has had having will would shall should can
    could may might must ought cannot let s t d m re ve ll don doesn didn isn aren wasn weren hasn haven hadn
    won wouldn shouldn couldn
"""
ADVERBS = """
    not very too also just only even still again ever never always often almost already rather quite more
    most less least much many few other others own same hence thus therefore however otherwise instead
"""
FUNCTION_WORDS = frozenset(
    " ".join((DETERMINERS, PRONOUNS, PREPOSITIONS, CONJUNCTIONS, AUXILIARIES, ADVERBS)).split()
)


def is_function_token(token: str) -> bool:
    """Whether a vocabulary entry is a stop word or made of punctuation and symbols alone.

    Punctuation inside a word (`##-`) counts; letters inside a word (`##the`) don't.
    """
    surface = token.removeprefix(CONTINUES).lstrip(STARTS)
    if all(unicodedata.category(character)[0] in "PSZC" for character in surface):
        return True
    return not token.startswith(CONTINUES) and surface.casefold() in FUNCTION_WORDS


def function_tokens(tokenizer: PreTrainedTokenizerFast) -> NDArray[np.bool_]:
    """Which vocabulary entries (V) say nothing: function words, punctuation, special tokens such as [SEP]."""
    marks = np.zeros(len(tokenizer), dtype=bool)
    marks[tokenizer.all_special_ids] = True
    decoder = tokenizer.backend_tokenizer.decoder
    bytes_as_letters = isinstance(decoder, ByteLevel)
    for token, token_id in tokenizer.get_vocab().items():
        surface = decoder.decode([token]).strip() if bytes_as_letters else token
        marks[token_id] |= is_function_token(surface)
    return marks
