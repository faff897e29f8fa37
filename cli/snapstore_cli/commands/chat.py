"""snapstore chat: talk to an agent; every turn is saved."""

from __future__ import annotations

import click

from snapstore import InvalidInput, Session, SnapstoreError
from snapstore.tasks.record import PREFIX as TASK
from snapstore_cli import documents, pushing
from snapstore_cli.chat import api
from snapstore_cli.chat.agents import Agent, AgentError, Echo
from snapstore_cli.chat.lines import Words, lines
from snapstore_cli.chat.program import ProgramAgent
from snapstore_cli.chat.screen import Screen
from snapstore_cli.chat.slash import NAMES, Commands
from snapstore_cli.chat.talk import Talk
from snapstore_cli.command import Command
from snapstore_cli.commands.resume import pick, saved_last
from snapstore_cli.errors import INTERRUPTED
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import messages as rendered
from snapstore_cli.render.words import count

_LAST_MESSAGES = 4
_LINES_A_MESSAGE = 12


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--resume", is_flag=True, help="Go on with a session; without NAME, pick one.")
@click.option("--continue", "go_on", is_flag=True, help="Go on with the session saved last.")
@click.option("--agent", metavar="CMD", help="A program that answers.")
@click.option("--api", "api_name", type=click.Choice([*api.KEYS, "none"]),
              help="A model that answers; none: only the built-in echo.")  # fmt: skip
@click.option("--model", metavar="NAME", help="The model to ask of the API.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="How long CMD may take for an answer.")  # fmt: skip
@click.pass_context
def chat(
    context: click.Context,
    name: str | None,
    resume: bool,
    go_on: bool,
    agent: str | None,
    api_name: str | None,
    model: str | None,
    timeout: float | None,
) -> None:
    """Talk to an agent; the question is saved before it is asked, and the answer when it came.

    Goes on where NAME stands, which becomes the current session; without NAME, the current one.
    CMD gets {"messages": [..], "scratchpad": {..}} on stdin and answers on stdout with text, with a
    JSON message, or with JSON Lines: messages, and pieces of text as {"text": ".."} while it
    writes. Without CMD a model answers if its key is set and its extra installed (ANTHROPIC_API_KEY
    and snapstore[anthropic], OPENAI_API_KEY and snapstore[openai]), else an echo.

    Ctrl-C ends an answer and keeps what came. /help lists what can be typed besides questions. From
    a pipe each line is a question. The exit code is not 0 when an agent failed.

    \b
    Examples:
      snapstore chat fix-login --agent ./agent.py
      snapstore chat --continue
      echo "Why does it fail?" | snapstore chat fix-login --agent ./agent.py
    """
    run: Invocation = context.obj
    answering = _agent(agent, api_name, model, timeout)
    session = _session(run, name, resume=resume, go_on=go_on)
    run.require_newest()
    screen = Screen(run.out, watched=run.may_ask)
    talk = Talk(session, answering)
    first = len(session.history)
    _welcome(run, talk, screen, shown=resume or go_on)
    interrupted = _repl(run, talk, screen)
    if run.out.json:
        _document(run, talk.session, first)
    if interrupted:
        context.exit(INTERRUPTED)
    context.exit(screen.code)


# --- who and where -------------------------------------------------------------------------------


def _agent(
    command: str | None, api_name: str | None, model: str | None, timeout: float | None
) -> Agent:
    if command is not None:
        if api_name is not None:
            raise click.UsageError("give --agent or --api, not both")
        return ProgramAgent(command, timeout=timeout)
    api_name = api_name or api.available()
    if api_name in (None, "none"):
        return Echo()
    assert api_name is not None
    try:
        return api.connect(api_name, model)
    except AgentError as error:
        raise InvalidInput(f"{api_name} cannot be asked: {error}") from None


def _session(run: Invocation, name: str | None, *, resume: bool, go_on: bool) -> Session:
    name = name or run.settings.session
    if name is None and (resume or go_on):
        asks = resume and not go_on and run.may_ask
        name = pick(run, run.store, (TASK,)) if asks else saved_last(run.store, (TASK,))
    if name is None:
        session = run.session_to_save
    elif resume or go_on:
        session = run.existing_session(name)
    else:
        session = run.session_of(name)
    if session.name.startswith(TASK):
        raise InvalidInput(
            f"{session.name} is the record of a task",
            hint=f"`snapstore fork {session.name} NAME` makes a session to talk in",
        )
    if session.head is not None:
        run.make_current(session.name)
    return session


def _welcome(run: Invocation, talk: Talk, screen: Screen, *, shown: bool) -> None:
    session, look = talk.session, run.out.look
    if shown and look.terminal and not run.out.json:
        start = max(0, len(session.history) - _LAST_MESSAGES)
        screen.lines(rendered.page(session.history[start:], start, look, _LINES_A_MESSAGE))
    screen.standing(session)
    if run.may_ask:
        screen.note(f"agent: {talk.agent.name}")
        screen.note("/help lists what can be typed")
    elif isinstance(talk.agent, Echo):
        screen.note("agent: echo, which only repeats the question; --agent CMD names another")
    waiting = documents.pending(session.head)
    if waiting:
        screen.note(f"{count(len(waiting), 'tool call')} there without a result: see /repair")
    elif talk.unanswered:
        screen.note("the last question has no answer yet: /retry asks it again")


def _document(run: Invocation, session: Session, first: int) -> None:
    head = session.head
    run.out.document(
        {
            "session": session.name,
            "turn": session.turn,
            "id": head.id if head else None,
            "messages": session.history[first:],
        }
    )


# --- the loop ------------------------------------------------------------------------------------


def _repl(run: Invocation, talk: Talk, screen: Screen) -> bool:
    """Read and answer until the input ends; whether it was interrupted."""
    commands = Commands(run, talk, screen)
    for line in lines(lambda: screen.prompt(talk.session), _completions(run), ask=run.may_ask):
        text = line.strip()
        if not text:
            continue
        try:
            if text.startswith("/") and not text.startswith("//"):
                if not commands(text):
                    break
                if not commands.again:
                    continue
                commands.again = False
            else:
                _ask(run, talk, screen, line[1:] if text.startswith("//") else line)
            answered = _answer(talk, screen)
            pushing.begin(run.store)
            if not answered and not run.may_ask:
                return True
        except SnapstoreError as error:
            screen.refused(error)
    return False


def _ask(run: Invocation, talk: Talk, screen: Screen, question: str) -> None:
    others = talk.ask(question)
    run.make_current(talk.session.name)
    if others:
        screen.note(f"{count(others, 'message')} came from elsewhere before this question")


def _answer(talk: Talk, screen: Screen) -> bool:
    """Have the question answered; False when the user cut it off."""
    name = talk.session.name
    outcome = talk.answer(screen.piece)
    screen.answered()
    if talk.session.name != name:
        screen.note(f"{name} was moved by somebody else: this goes on as {talk.session.name}")
    if outcome.ending == "failed":
        screen.failed(
            f"the agent failed: {outcome.error}",
            "the question is saved: /retry asks it again, also as a line of a pipe, and "
            f"`snapstore resume {talk.session.name}` shows it",
        )
    elif outcome.ending == "interrupted":
        screen.note("interrupted; what came is saved")
    return outcome.ending != "interrupted"


def _completions(run: Invocation) -> Words:
    def words(typed: str) -> list[str]:
        command, blank, begun = typed.partition(" ")
        if not blank:
            return [name for name in NAMES if name.startswith(command)] if command else []
        if command not in ("/diff", "/rewind"):
            return []
        try:
            names = [info.name for info in run.store.sessions()]
        except SnapstoreError:
            return []
        return [f"{command} {name}" for name in names if name.startswith(begun)]

    return words
