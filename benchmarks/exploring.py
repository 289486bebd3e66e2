"""How soon the explorer answers: its first query, later ones, a document, the terms, and a term that is lowered.

    python -m benchmarks.exploring RUN_OR_MODEL [--baseline MODEL] [--corpus CORPUS] [--threads 1] [--clock processor]

Requests go one after the other, over HTTP, to a server of this process. Queries are the judged ones of the corpus, else
titles. `start` reads models and documents, before there is an address to open. The clock "processor" counts what this
process worked, server and client together, which other programs on the machine hardly change.
"""

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import quote
from urllib.request import urlopen

import torch

from benchmarks.measure import CLOCKS, options
from sparse_adapt.plugins.pages.explorer.server import listen, serve
from sparse_adapt.plugins.pages.explorer.subject import Explored, ExploredPlaces, explored, find_places

MANY = 20  # pages of a kind


@contextmanager
def served(subject: Explored) -> Iterator[str]:
    """The address of an explorer, which ends with this process."""
    addresses: list[str] = []
    ready = threading.Event()

    def announce(address: str) -> None:
        addresses.append(address)
        ready.set()

    with tempfile.TemporaryDirectory() as saves:
        arguments = subject, listen(0), Path(saves), announce
        threading.Thread(target=serve, args=arguments, daemon=True).start()
        ready.wait()
        yield addresses[0]


def pages(subject: Explored, address: str) -> Iterator[tuple[str, list[str]]]:
    """Each kind of page with the addresses of some."""
    judged = [] if subject.judged is None else [query.text for query in subject.judged.queries]
    texts = [quote(text) for text in judged or [each.title for each in subject.documents] if text]
    yield "first query", [f"{address}?q={texts[0]}"]
    yield "later queries", [f"{address}?q={text}" for text in texts[1 : MANY + 1]]
    names = [each.document_id for each in subject.documents[:: max(1, len(subject.documents) // MANY)]]
    yield "documents", [f"{address}document/{quote(name, safe='')}" for name in names[:MANY]]
    if subject.terms:
        of_terms = [f"{address}term/{token_id}" for token_id in subject.terms][:MANY]
        yield "all terms", [f"{address}terms"]
        yield "first term", of_terms[:1]
        yield "later terms", of_terms[1:]
        yield "terms lowered by .5, with a query", [f"{each}?amount=0.5&q={texts[0]}" for each in of_terms]


def measure(places: ExploredPlaces, clock: Callable[[], float]) -> Iterator[tuple[str, list[float]]]:
    """Seconds of the start, then of each page of each kind."""
    begun = clock()
    subject = explored(places)
    yield "start", [clock() - begun]
    with served(subject) as address:
        for kind, addresses in pages(subject, address):
            seconds = []
            for each in addresses:
                begun = clock()
                with urlopen(each) as answer:
                    answer.read()
                seconds.append(clock() - begun)
            yield kind, seconds


def main() -> None:
    """Measure and print."""
    parser = options(__doc__)
    parser.add_argument("source")
    parser.add_argument("--baseline")
    parser.add_argument("--corpus")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    places = find_places(arguments.source, arguments.baseline, arguments.corpus)
    for kind, seconds in measure(places, CLOCKS[arguments.clock]):
        if seconds:
            print(f"{kind}: {median(seconds):.3f} s, at most {max(seconds):.3f} s", flush=True)


if __name__ == "__main__":
    main()
