"""Texts as token ids, grouped so that little padding is computed.

Dimensions: B texts, L positions.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

TokenIds = Sequence[int]


def pad(texts: Sequence[TokenIds], pad_id: int) -> tuple[Tensor, Tensor]:
    """Token ids (B, L) filled up on the right with `pad_id`, and the attention mask (B, L) of ones and zeros.

    L is 1 at least, for texts of no tokens.
    """
    longest = max([1, *map(len, texts)])
    ids = torch.full((len(texts), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(texts), longest), dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text, dtype=torch.long)
        mask[row, : len(text)] = 1
    return ids, mask


def cut(token_ids: list[list[int]], longest: int | None) -> list[list[int]]:
    """Texts of at most so many tokens, the last special one kept; None: as they are."""
    if longest is None:
        return token_ids
    return [ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]] for ids in token_ids]


def group_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices of texts in groups of like length, longest first, each group at most `tokens` when padded.

    A text longer than `tokens` is a group of its own. The first group is the largest in memory, so a
    batch that doesn't fit fails at once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        width = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + width]
        start += width


def read_by_length(
    texts: Sequence[TokenIds],
    tokens: int,
    pad_id: int,
    device: torch.device,
    read: Callable[[Tensor, Tensor, list[int]], Tensor],
) -> Tensor:
    """What `read` gives for each text, a row each in the order of the texts, which are read in groups of like length.

    read: padded token ids (B, L) of a group, its attention mask (B, L) and the group's indices, to B rows.
    tokens: of a group when padded, as in `group_by_length`. There is one text at least.
    """
    groups = list(group_by_length([len(text) for text in texts], tokens))
    parts = []
    for group in groups:
        ids, mask = pad([texts[row] for row in group], pad_id)
        parts.append(read(ids.to(device), mask.to(device), group))
    order = torch.tensor([row for group in groups for row in group]).argsort()
    return torch.cat(parts)[order.to(device)]
