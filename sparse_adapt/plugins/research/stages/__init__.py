"""The stages of papers, a file each: masked sentences, pairs, triplets, logits, the published losses."""
