"""Passages of Wikipedia's articles on persons, places and ideas, under CC BY-SA 3.0."""

import bz2
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import mwparserfromhell
from record import Entry, cut, drawn, plain
from wordfreq import zipf_frequency

DUMP = "gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
PER_ARTICLE = 24
LEAST = 25  # words of a paragraph
UNSAID = {
    "references",
    "see also",
    "external links",
    "notes",
    "further reading",
    "bibliography",
    "sources",
    "footnotes",
}
_GONE = re.compile(r"<ref[^>/]*/>|<ref.*?</ref>|<math.*?</math>|<!--.*?-->|\{\|.*?\|\}", re.DOTALL)
_FILE = re.compile(r"\[\[(?:File|Image|Category):(?:[^\[\]]|\[\[[^\]]*\]\])*\]\]")


def entries(folder: Path) -> Iterator[Entry]:
    """Some paragraphs of each article, chosen by their words. `folder`: package gensim 4.4.0, unpacked."""
    for title, markup in _articles(folder / DUMP):
        sentences = list(_of_article(title, markup))
        yield from sorted(sentences, key=lambda entry: drawn(entry.text, 2**32))[:PER_ARTICLE]


def _articles(path: Path) -> Iterator[tuple[str, str]]:
    with bz2.open(path) as file:
        for _, page in ElementTree.iterparse(file):
            if not page.tag.endswith("}page"):
                continue
            space = page.tag[: -len("page")]
            title, text = (
                page.findtext(f"{space}title", ""),
                page.findtext(f"{space}revision/{space}text", ""),
            )
            if page.findtext(f"{space}ns") == "0" and not text.lower().startswith("#redirect"):
                yield title, text
            page.clear()


def _of_article(title: str, markup: str) -> Iterator[Entry]:
    """The passages of one article: each section's paragraphs that are prose."""
    subject = re.sub(r" \(.*", "", title)
    code = mwparserfromhell.parse(_FILE.sub("", _GONE.sub("", markup)))
    for section in code.get_sections(flat=True):
        headings = section.filter_headings()
        heading = plain(headings[0].title.strip_code()) if headings else ""
        if heading.lower() in UNSAID:
            continue
        for number, paragraph in enumerate(_paragraphs(section)):
            yield Entry(
                "wikipedia", subject, subject, paragraph, _question(subject, heading, number, paragraph)
            )


def _paragraphs(section: mwparserfromhell.wikicode.Wikicode) -> Iterator[str]:
    lines = section.strip_code(normalize=True).split("\n")
    for line in lines:
        text = cut(plain(re.sub(r"\((?:[^()]*;)?[^()a-zA-Z]*\)|\[\d+\]", "", line)))
        prose = text.endswith((".", "?", "!")) and not re.search(r"[|{}=\[\]*]|^\W|thumb|http|px", text)
        if prose and len(text.split()) >= LEAST and sum(map(str.isascii, text)) > 0.98 * len(text):
            yield text


def _question(subject: str, heading: str, number: int, paragraph: str) -> str:
    """What someone types who wants this paragraph: who or what it is, a section's matter, or its telling words."""
    about, part = subject.lower(), heading.lower()
    if not part and not number:
        person = re.search(r"\((?:born|[^()]*\d{4}\s?[\u2013-])", paragraph[:200]) or re.search(
            r" (he|she) ", paragraph
        )
        return f"who was {about}" if person else f"what is {about}"
    text = " ".join(_telling(subject, paragraph))
    if part and not number and 1 <= len(part.split()) <= 4:
        return (f"{about} {part}", f"what about {part} of {about}", f"{part} in {about} {text}")[
            drawn(text, 3)
        ]
    return (f"{about} {text}", f"{text} {about}", f"what does {about} have to do with {text}")[drawn(text, 3)]


def _telling(subject: str, paragraph: str) -> list[str]:
    """Two words of the paragraph, in its order, that are rare elsewhere but known."""
    words = list(dict.fromkeys(re.findall(r"[a-z]{4,}", paragraph.lower())))
    free = [word for word in words if word not in subject.lower() and zipf_frequency(word, "en") > 2.5]
    chosen = sorted(free, key=lambda word: zipf_frequency(word, "en") - 0.8 * paragraph.lower().count(word))[
        :6
    ]
    start = drawn(paragraph, max(1, len(chosen) - 1))
    return [word for word in words if word in chosen[start : start + 2]]
