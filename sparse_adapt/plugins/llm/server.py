"""A model that writes, behind an address: any server of OpenAI's chat protocol, one request for each prompt.

Answers are kept in a journal beside the output. Its lines are JSON: `key`, the SHA-256 of model, prompts and settings,
and `answer`, as it came. A run that is stopped goes on there, and a prompt that was answered isn't sent again.

A call that fails is repeated as often as `REPEATS` says, after the time that the server asks for (`Retry-After`) or a
growing one, until the one deadline of the call. When `PATIENCE` calls in a row have failed, no further one is sent. A
reply is read as it comes, and no further than so many tokens can be long. The key of the server is `OPENAI_API_KEY` of
the environment; it is sent to the address alone, and never written or printed.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from multiprocessing import TimeoutError
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from sparse_adapt.errors import ConfigError, InputError, MissingExtraError, first_line, without
from sparse_adapt.files.journal import note, noted
from sparse_adapt.files.place import is_there
from sparse_adapt.files.records import JsonObject, Record, parse_record
from sparse_adapt.plugins.llm.replies import Overdue, TooLong, bound_behind, bounded, seconds_to_wait, until
from sparse_adapt.report.progress import Before, ProgressFor, no_progress_for

if TYPE_CHECKING:
    from multiprocessing.pool import IMapIterator

    from openai import OpenAI, Timeout

KEY, NO_KEY = "OPENAI_API_KEY", "none"
REPEATS, PATIENCE, AT_ONCE = 3, 3, 4  # of one call; failures in a row; calls at a time
SECONDS, SECONDS_TO_CONNECT = (
    300.0,
    10.0,
)  # which a processor may take for a long prompt; of a call, repeats and all
SILENCE = 30.0  # seconds without any answer after which that is said
BYTES_A_TOKEN, ENVELOPE = 20, 1 << 16  # of a reply at most, and what the protocol puts around its text
LETTERS_A_TOKEN = 4  # about
CLOSED_TO_US = (401, 402, 403, 404)  # no other prompt would be answered either
PASSING = (408, 409, 429)  # so is every status from 500
TAKEN_ILL = (400, 413, 422)  # a prompt that the server won't have
MAY_LACK = ("response_format", "temperature", "seed", "max_tokens")  # settings that a server may not know
NEWER = "max_completion_tokens"  # what servers that refuse `max_tokens` call it

BEGINS = b'{"key": "'  # as each line of the journal does

Message = dict[str, str]
Tell = Callable[[str], None]
"""Hears a line of words."""


class Prompt(NamedTuple):
    """The prompt about one thing, and what messages call that thing."""

    name: str
    text: str


@dataclass(slots=True)
class Answers:
    """Answers to prompts in their order, None for those that have none, and why these have none by their names."""

    texts: list[str | None]
    unanswered: dict[str, str] = field(default_factory=dict)
    before: int = 0  # answers that the journal held
    requests: int = 0  # sent, repeated ones too


class _Failure(NamedTuple):
    """Why a call has no answer.

    kind: the server is closed to every prompt, can't be reached, is busy or broken for now, or won't have this prompt.
    """

    reason: str
    kind: Literal["closed", "gone", "busy", "refused"]


class _Line(Record):
    """A line of the journal."""

    key: str
    answer: str


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Reply(BaseModel):
    """As much of a reply as is read."""

    choices: tuple[_Choice, ...]


def server_of(llm: str) -> tuple[str, str]:
    """Address and model of URL#MODEL; an address without a path ends in /v1. Raises ConfigError for another form."""
    try:
        url = urlsplit(llm)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or not url.fragment or url.query:
        raise ConfigError(
            "--llm: write URL#MODEL, such as http://localhost:8000/v1#SmolLM2, for a server of OpenAI's protocol"
        )
    if "@" in url.netloc:
        raise ConfigError(f"--llm: takes no password in the address; set {KEY} in the environment")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/') or '/v1'}", url.fragment


def journal_beside(place: str | Path) -> Path:
    """Where the answers for an output are kept, whether the output is there or under way."""
    path = Path(place)
    return path.with_name(f"{path.name.removesuffix('.partial')}.answers.jsonl")


class Server:
    """A model at an address. `tell` hears what will be sent before anything is, `progress_for` of each answer."""

    def __init__(self, llm: str, tell: Tell, progress_for: ProgressFor = no_progress_for) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError("openai", "llm") from error
        self.openai = openai
        self.address, self.model = server_of(llm)
        self.tell, self.progress_for = tell, progress_for
        self.key = os.environ.get(KEY) or NO_KEY
        self.left_out: set[str] = set()  # settings that the server doesn't know
        self.sent: list[object] = []

    def ask(
        self,
        instructions: Sequence[Message],
        form: type[BaseModel],
        prompts: Sequence[Prompt],
        most_tokens: int,
        journal: Path,
    ) -> Answers:
        """The answer to each prompt, from the journal where it has it. Raises ConfigError where nobody answers.

        instructions: the messages before each prompt. form: of an answer, as JSON. most_tokens: of an answer.
        """
        settings = self._settings(instructions, form, most_tokens)
        keys = [self._key(settings, prompt) for prompt in prompts]
        known = {line.key: line.answer for line in _read(journal)}
        todo = [place for place, key in enumerate(keys) if key not in known]
        answers = Answers([], before=len(prompts) - len(todo))
        if todo:
            texts = [prompts[place].text for place in todo]
            self._announce(instructions, texts, answers.before, most_tokens, journal)
        progress, failures = self.progress_for("answers", len(prompts)), list[_Failure]()
        progress(Before(answers.before))
        for place, answer in self._answers(settings, prompts, todo):
            progress(1)
            if isinstance(answer, str):
                note(journal, json.dumps({"key": keys[place], "answer": answer}, ensure_ascii=False))
                known[keys[place]] = answer
            else:
                answers.unanswered[prompts[place].name] = answer.reason
                failures.append(answer)
        self._check_any(failures, answered=any(keys[place] in known for place in todo), before=answers.before)
        answers.texts = [known.get(key) for key in keys]
        for prompt, text in zip(prompts, answers.texts, strict=True):
            if text is None:
                answers.unanswered.setdefault(prompt.name, "not sent any more")
        answers.requests = len(self.sent)
        return answers

    def _answers(
        self, settings: JsonObject, prompts: Sequence[Prompt], todo: Sequence[int]
    ) -> Iterator[tuple[int, str | _Failure]]:
        """Places of prompts and their answers as they come, until the server seems to be gone."""
        if not todo:
            return
        in_a_row = 0
        with self._client(settings["max_tokens"]) as client, ThreadPool(AT_ONCE) as pool:
            calls = ((place, prompts[place].text) for place in todo)
            answered = pool.imap_unordered(
                lambda call: (call[0], self._answer(client, settings, call[1])), calls
            )
            for place, answer in self._as_they_come(answered, todo[0]):
                yield place, answer
                kind = answer.kind if isinstance(answer, _Failure) else "answered"
                in_a_row = in_a_row + 1 if kind in ("gone", "busy") else 0
                if kind == "closed" or in_a_row == PATIENCE:
                    return

    def _as_they_come(
        self, answered: "IMapIterator[tuple[int, str | _Failure]]", first: int
    ) -> Iterator[tuple[int, str | _Failure]]:
        """Answers as they come. That none comes for a while is said; where none ever does, the first has failed."""
        quiet, told = 0.0, False
        while True:
            try:
                yield answered.next(min(SILENCE, SECONDS))
                quiet = 0.0
            except StopIteration:
                return
            except TimeoutError:
                quiet += min(SILENCE, SECONDS)
            if quiet and not told:
                told = True
                self.tell(
                    f"{self.model} at {self.address} has been silent for {quiet:.0f} s; a call may take {SECONDS:.0f} s"
                )
            if quiet > SECONDS + SECONDS_TO_CONNECT:  # by a reply whose head trickles in
                yield first, _Failure(f"no reply within {SECONDS:.0f} s", "closed")
                return

    def _client(self, most_tokens: int) -> "OpenAI":
        """Follows no redirection: texts go to the address that was named. Its replies are bounded."""
        http = self.openai.DefaultHttpxClient(
            follow_redirects=False,
            timeout=self.openai.Timeout(SECONDS, connect=SECONDS_TO_CONNECT),
            headers={"Accept-Encoding": "identity"},
            event_hooks={
                "request": [self.sent.append],
                "response": [partial(bounded, most=BYTES_A_TOKEN * most_tokens + ENVELOPE)],
            },
        )
        return self.openai.OpenAI(base_url=self.address, api_key=self.key, max_retries=0, http_client=http)

    def _answer(self, client: "OpenAI", settings: JsonObject, text: str) -> str | _Failure:
        """What the model writes, or why it writes nothing."""
        try:
            content = self._repeated(client, settings, text).choices[0].message.content or ""
        except (ValidationError, IndexError):
            return _Failure("its reply isn't one of the protocol", "busy")
        except (self.openai.APITimeoutError, Overdue):
            return _Failure(f"no reply within {SECONDS:.0f} s", "busy")
        except TooLong:
            return _Failure("its reply is longer than what was asked for", "busy")
        except self.openai.APIStatusError as error:
            status, body = error.status_code, error.body
            message = body.get("message") if isinstance(body, dict) else None
            message = first_line(self._without_key(str(message or error.message)))
            closed = status < 400 or status in CLOSED_TO_US
            return _Failure(
                f"{status}: {message}", "closed" if closed else "refused" if status in TAKEN_ILL else "busy"
            )
        except self.openai.APIConnectionError as error:
            cause = first_line(self._without_key(str(error.__cause__ or error)))
            return _Failure(f"can't be reached ({cause})", "gone")
        return self._without_key(content)

    def _repeated(self, client: "OpenAI", settings: JsonObject, text: str) -> _Reply:
        """A call, again where that may help, until the deadline."""
        deadline = time.monotonic() + SECONDS
        for repeat in count(1):
            left = max(deadline - time.monotonic(), 0.01)
            try:
                with until(deadline):
                    return self._called(client.with_options(timeout=self._timeout(left)), settings, text)
            except (self.openai.APIStatusError, self.openai.APIConnectionError) as error:
                if (bound := bound_behind(error)) is not None:
                    raise bound from error
                wait = seconds_to_wait(error, repeat)
                if repeat > REPEATS or not self._passes(error) or time.monotonic() + wait > deadline:
                    raise
                time.sleep(wait)
        raise AssertionError

    def _timeout(self, seconds: float) -> "Timeout":
        return self.openai.Timeout(seconds, connect=min(seconds, SECONDS_TO_CONNECT))

    def _passes(self, error: Exception) -> bool:
        """Whether the same call may be answered a little later; one that took all of its time won't be."""
        if isinstance(error, self.openai.APIStatusError):
            return error.status_code in PASSING or error.status_code >= 500
        return not isinstance(error, self.openai.APITimeoutError)

    def _called(self, client: "OpenAI", settings: JsonObject, text: str) -> _Reply:
        """One call, without the settings that the server says it doesn't know."""
        while True:
            sent = {name: value for name, value in settings.items() if name not in self.left_out}
            if "max_tokens" in self.left_out:
                sent[NEWER] = settings["max_tokens"]
            messages = [*settings["messages"], {"role": "user", "content": text}]
            try:
                raw = client.chat.completions.with_raw_response.create(**{**sent, "messages": messages})
                return _Reply.model_validate_json(raw.text)
            except (self.openai.BadRequestError, self.openai.UnprocessableEntityError) as error:
                unknown = {name for name in MAY_LACK if name in sent and name in str(error)}
                if not unknown:
                    raise
                self.left_out |= unknown

    def _settings(
        self, instructions: Sequence[Message], form: type[BaseModel], most_tokens: int
    ) -> JsonObject:
        schema = {"name": form.__name__, "strict": True, "schema": form.model_json_schema()}
        return {
            "model": self.model,
            "messages": list(instructions),
            "temperature": 0,
            "seed": 0,
            "max_tokens": most_tokens,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }

    def _key(self, settings: JsonObject, prompt: Prompt) -> str:
        request = json.dumps([settings, prompt.text], sort_keys=True)
        return sha256(request.encode()).hexdigest()

    def _announce(
        self,
        instructions: Sequence[Message],
        prompts: Sequence[str],
        before: int,
        most_tokens: int,
        journal: Path,
    ) -> None:
        """Say what will be sent where, and how much it is."""
        each = sum(len(message["content"]) for message in instructions)
        tokens = (each * len(prompts) + sum(map(len, prompts))) // LETTERS_A_TOKEN
        known = f" ({before:,} more were answered before)" if before else ""
        self.tell(
            f"{self.model} at {self.address} will be asked {len(prompts):,} times{known}: about {tokens:,} tokens, "
            f"texts of the corpus among them, and at most {most_tokens * len(prompts):,} tokens back; answers are "
            f"kept in {journal}"
        )

    def _check_any(self, failures: Sequence[_Failure], *, answered: bool, before: int) -> None:
        """Raise ConfigError where no call was answered and none would be."""
        if not failures or answered:
            return
        if not before or any(each.kind in ("closed", "gone") for each in failures):
            raise ConfigError(
                f"--llm: {self.model} at {self.address} doesn't answer: {failures[0].reason}; check that the "
                f"server runs, the address, the model's name and {KEY}"
            )

    def _without_key(self, text: str) -> str:
        return text if self.key == NO_KEY else without(self.key, text)


def _read(journal: Path) -> list[_Line]:
    """The answers so far. Raises InputError, and changes nothing, for a file that is no journal of answers."""
    if not is_there(journal) and not journal.is_symlink():
        return []
    if journal.is_symlink() or not journal.is_file():
        raise _no_journal(journal)
    *whole, cut = journal.read_bytes().split(b"\n")
    if cut[: len(BEGINS)] != BEGINS[: len(cut)]:
        raise _no_journal(journal)
    answers = [
        parse_record(line, journal, _Line, "move it away", number)
        for number, line in enumerate(whole, start=1)
    ]
    noted(journal)  # takes away what a kill cut
    return answers


def _no_journal(path: Path) -> InputError:
    return InputError(path, "isn't a journal of answers; move it away")
