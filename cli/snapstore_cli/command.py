"""Click commands as snapstore has them: global options in every place, subcommands loaded late."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource
from click.types import StringParamType

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GIVEN = "snapstore.given"
"""Key in a context's meta under which the global options that were given are collected."""

_PREFIX = "global_"
_COMPLETED = frozenset({"name", "rev", "left", "right", "words", "key"})
"""Parameters whose values a shell can complete, by the names that commands give them."""
_EVERYWHERE = (
    "Every command also takes --store, --session/-s, --json, -q, -v, --color, --no-pager and "
    "--no-input; see `snapstore --help`."
)


class LazyCommand(NamedTuple):
    """A command in the table of a group, as far as it is known without being imported."""

    name: str
    place: str
    """``module:attribute`` under snapstore_cli.commands."""
    help: str
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that it can be called by."""
        return (self.name, *self.aliases)

    def load(self) -> click.Command:
        """Import it."""
        module, attribute = self.place.split(":")
        found: click.Command = getattr(
            importlib.import_module(f"snapstore_cli.commands.{module}"), attribute
        )
        return found


class _Known(StringParamType):
    """A text of which the store knows values that a shell may complete."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from snapstore_cli.completing import complete

        return complete(ctx, param.name or "", incomplete)


def _near(name: str, known: Sequence[str]) -> list[str]:
    """The names that are close to one; else the one that it may be short for, as rm for remove."""
    from difflib import get_close_matches

    begun = [full for full in known if full[:1] == name[:1] and _in_order(name, full)]
    return get_close_matches(name, known, n=2) or (begun if len(begun) == 1 else [])


def _in_order(letters: str, text: str) -> bool:
    left = iter(text)
    return all(letter in left for letter in letters)


def _collect(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    # A command's options are read after its group's, so what stands further right wins.
    name = param.name or ""
    if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        ctx.meta.setdefault(GIVEN, {})[name.removeprefix(_PREFIX)] = value


def _option(*names: str, hidden: bool, **attributes: Any) -> click.Option:
    return click.Option(names, hidden=hidden, expose_value=False, callback=_collect, **attributes)


def global_options(*, hidden: bool) -> list[click.Parameter]:
    """New copies of the options that may stand before, between and after commands."""
    return [
        _option(
            "--store",
            _PREFIX + "store",
            metavar="PATH|URL",
            hidden=hidden,
            help="The store; else $SNAPSTORE_STORE, else the nearest .snapstore/ upwards, "
            "else one in the user data directory.",
        ),
        _option(
            "-s",
            "--session",
            _PREFIX + "session",
            type=_Known(),
            metavar="NAME",
            hidden=hidden,
            help="The session; else the store's current one.",
        ),
        _option(
            "--json", _PREFIX + "json", is_flag=True, hidden=hidden, help="Print JSON on stdout."
        ),
        _option("-q", "--quiet", _PREFIX + "quiet", is_flag=True, hidden=hidden, help="Say less."),
        _option(
            "-v",
            "--verbose",
            _PREFIX + "verbose",
            is_flag=True,
            hidden=hidden,
            help="Say more, and show the traceback of a bug.",
        ),
        _option(
            "--color",
            _PREFIX + "color",
            type=click.Choice(["auto", "always", "never"]),
            hidden=hidden,
            help="When to use colour; NO_COLOR is heeded.",
        ),
        _option(
            "--no-pager",
            _PREFIX + "no_pager",
            is_flag=True,
            hidden=hidden,
            help="Print long output straight to the terminal.",
        ),
        _option("--no-input", _PREFIX + "no_input", is_flag=True, hidden=hidden, help="Never ask."),
    ]


class Command(click.Command):
    """A command that takes the global options and is handed an Invocation as its context's obj."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params += global_options(hidden=True)
        for parameter in self.params:
            if parameter.name in _COMPLETED and parameter.type is click.STRING:
                parameter.type = _Known()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line instead of the eight options that every command has."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(_EVERYWHERE)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and close the store it opened."""
        from snapstore_cli.invocation import Invocation
        from snapstore_cli.settings import Settings

        with Invocation(Settings.of(ctx.meta.get(GIVEN, {}))) as invocation:
            ctx.obj = invocation
            return super().invoke(ctx)


class Group(click.Group):
    """A group whose subcommands stand in a table by section, and are imported when run."""

    command_class = Command

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, Sequence[LazyCommand]] | None = None,
        hide_global_options: bool = True,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.params += global_options(hidden=hide_global_options)
        self._table = table or {}

    def _lazy(self) -> list[LazyCommand]:
        return [command for section in self._table.values() for command in section]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name that can be typed, but for aliases."""
        return [*super().list_commands(ctx), *(command.name for command in self._lazy())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name or alias, imported now."""
        for command in self._lazy():
            if cmd_name == command.name or cmd_name in command.aliases:
                return command.load()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with near names in the error, of commands that are not imported too."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = _near(name, [*self.commands, *(n for c in self._lazy() for n in c.names)])
            also = f"; did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{also}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, without importing what is behind them."""
        if not self._table:
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        named = [c for c in self._lazy() if c.name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(c.name, help=c.help) for c in named), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, section by section."""
        if not self._table:
            super().format_commands(ctx, formatter)
        for title, section in self._table.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (", ".join((command.name, *command.aliases)), command.help)
                        for command in section
                    ]
                )
