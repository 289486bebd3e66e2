"""A stage that somebody adds: documents get shorter, with one loss term of its own."""

from sparse_adapt.objectives.loss_terms import functions, term
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Training


class ShortenWeights(Settings):
    """Weights of the loss terms."""

    brevity: float = term(1.0, "Sum of a document's weights.", "added_stage:brevity")


class Shorten(Training):
    """Documents of fewer weights."""

    weights: ShortenWeights = setting(ShortenWeights(), "Weights of the loss terms.")
    train: str = setting("all")


class Shortening:
    """The task: documents drawn at random, and what their weights come to."""

    name = "shorten"

    def __init__(self, encoder, documents, settings):
        self.token_ids = encoder.tokenize([document.full_text for document in documents])
        self.settings, self.steps = settings, settings.steps
        self.weights, self.functions = settings.weights.model_dump(), functions(ShortenWeights)

    def batch(self, random):
        return random.choice(len(self.token_ids), self.settings.batch_size).tolist()

    def terms(self, encoder, batch):
        read = encoder([self.token_ids[row] for row in batch]).weights
        return {key: function(read) for key, function in self.functions.items()}


def brevity(read):
    return read.sum(dim=1).mean()


SHORTEN = Stage(
    "shorten",
    Shorten,
    (CORPUS,),
    lambda encoder, inputs, settings: Shortening(encoder, inputs[CORPUS], settings),
    dense=False,
    presets={"hasty": {"steps": 2}},
)
