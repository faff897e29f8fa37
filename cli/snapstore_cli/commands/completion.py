"""snapstore completion: the script that a shell completes with."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation

VARIABLE = "_SNAPSTORE_COMPLETE"
"""Set by the script when it asks what to complete."""

# To bash @ parts two words, and so fix-login@2 would be three.
_ONE_WORD = "COMP_WORDBREAKS=${COMP_WORDBREAKS//@/}\n"
# What fish is told of a turn may have commas of its own.
_FIRST_COMMA = 'string split ","', 'string split --max 1 ","'


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def completion(run: Invocation, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, sessions and turns.

    Put the first line below into ~/.bashrc, or the second into ~/.zshrc, behind compinit, or run
    the third once for fish. Then `snapstore diff fix<TAB>` completes session names, and
    `snapstore show fix-login@<TAB>` the turns of one.

    \b
    Examples:
      eval "$(snapstore completion bash)"
      eval "$(snapstore completion zsh)"
      snapstore completion fish > ~/.config/fish/completions/snapstore.fish
    """
    script = _script(shell)
    if run.out.json:
        run.out.document({"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)


def _script(shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None
    # The base class's source: bash's own would start a bash to look at its version.
    script = ShellComplete.source(kind(click.Command("snapstore"), {}, "snapstore", VARIABLE))
    script = (_ONE_WORD if shell == "bash" else "") + script.strip("\n") + "\n"
    return script.replace(*_FIRST_COMMA)
