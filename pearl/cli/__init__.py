"""The command line. Each command calls the library once and prints text or writes a file; it is imported on use."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pearl import plugins
from pearl.cli.terminal import escaped_streams, notice
from pearl.errors import PearlError, UsageError, suggest
from pearl.errors.callers import command_running
from pearl.errors.escaping import to_json
from pearl.errors.privacy import HIDDEN, is_private, privacy_restored
from pearl.plugins.version import __version__

COMMANDS = "pearl.cli.commands"

GROUPS = {
    "Ask": {
        "ask": "Answer QUESTION from each DOC, with passages that support it.",
        "search": "Find the passages of CORPUS that match QUERY best.",
        "mcp": "Serve agents by the Model Context Protocol.",
        "demo": "Answer three questions about shipped documents, offline.",
    },
    "Many documents": {
        "extract": "Take the fields of SCHEMA from each DOC, with sources.",
        "execute": "Run PLAN, a plan file, over documents, or the rows of --tasks.",
        "plan": "Write a plan for QUESTION, or for every question of --data.",
        "review": "Decide what a run left open, beside its documents.",
        "index": "Index CORPUS for fast searches.",
        "view": "Write results, runs or traces as an HTML page.",
        "runs": "List, resume, export and remove the runs in the store.",
    },
    "Build your own": {
        "init": "Make FOLDER a project for actions and examples of your own.",
        "check": "Check plan files and action files (- is stdin).",
        "fmt": "Rewrite plan files and action files in canonical form.",
        "mine": "Draft actions from the questions of --data.",
        "refine": "Make libraries and banks of examples.",
        "eval": "Score methods over the samples of --data.",
        "compare": "Compare two logs of `pearl eval`, sample by sample.",
        "grammar": "Print the grammar of the plans that are valid with a library.",
        "lsp": "Serve an editor by the Language Server Protocol.",
    },
    "Look after it": {
        "doctor": "Check whether PEARL works here.",
        "models": "List backends, servers with a short name, prices and windows.",
        "config": "Show the settings in force, and trust folders to set them.",
        "completion": "Print the completion script of SHELL.",
    },
}
"""Group of the help → its commands, in order, with their summaries: the help imports no command."""

EPILOG = """\
Settings come from flags, then PEARL_... variables (PEARL_MODEL, PEARL_BASE_URL, ...), then TOML:
the file of --config or $PEARL_CONFIG, else ./pearl.toml, then pearl/pearl.toml in $XDG_CONFIG_HOME
or ~/.config. ./pearl.toml may set servers, models and files only in a folder that you trust:
`pearl config`. Keys: $PEARL_API_KEY, else the vendor's: $OPENAI_API_KEY, $ANTHROPIC_API_KEY, ...

\b
Exit codes: 0 done; 1 something was found, some rows failed, or an answer is
undecided or degraded; 2 wrong usage; 3 an input cannot be read; 4 no valid
plan; 5 the model gave no usable reply, or refused; 6 a step failed; 7 a limit
is reached; 8 the store cannot be used; 75 paused, resume it later; 130
interrupted (143 by SIGTERM, 129 by SIGHUP). With --json an error is a JSON object on stdout, too: status
"failed" and error with type, message, help and exit_code.
"""


class _Commands(click.Group):
    """The commands of the folder, each imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(plugins.names(COMMANDS))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if not plugins.exists(COMMANDS, name):
            return None
        try:
            command = plugins.load(COMMANDS, name).command
            if not isinstance(command, click.Command):
                raise UsageError(
                    f"the plug-in '{name}' defines no click command", help="uninstall it"
                )
        except UsageError as error:  # of a plug-in of another distribution: the others work
            broken = error

            def fail() -> None:
                raise broken

            return click.Command(
                name, callback=fail, short_help=f"broken: 'pearl {name}' shows the error", add_help_option=False,
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )  # fmt: skip
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups; those of other distributions come last."""
        names = self.list_commands(ctx)
        width = max(map(len, names))
        shipped = set(chain.from_iterable(GROUPS.values()))
        others = {
            name: command.get_short_help_str(formatter.width - width)
            for name in names
            if name not in shipped and (command := self.get_command(ctx, name)) is not None
        }
        for title, summaries in {**GROUPS, "Other distributions": others}.items():
            rows = [(name.ljust(width), line) for name, line in summaries.items() if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UsageError(
                f"no command '{name}'", help=suggest(name, self.list_commands(ctx), "commands")
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _abandon_stdout()  # the reader has left (`| head`): no error, though click would exit with 1
            return 0


@click.group(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="pearl %(version)s")
@click.option("--config", type=click.Path(), envvar="PEARL_CONFIG", help="TOML file of settings.")
@click.pass_context
def group(ctx: click.Context, config: str | None) -> None:
    """Ask long documents questions: a question becomes a plan, the plan runs over the document."""
    from pearl.cli import settings
    from pearl.cli.options import CONFIG, FOUND, PLACES

    for line in settings.unknown(os.environ):
        notice(line)
    ctx.meta[CONFIG] = config
    if ctx.invoked_subcommand in ("config", "lsp"):  # they report errors in the files themselves
        return
    files = settings.read_settings(config)
    if files:
        ctx.meta[FOUND] = settings.found_names(files)
        ctx.meta[PLACES] = {name: str(f.path) for f in reversed(files) for name in f.values}
        ctx.default_map = dict.fromkeys(plugins.names(COMMANDS), settings.defaults(files))


@escaped_streams()
@privacy_restored()
@command_running(notice)
def run(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if args is None else args)
    options = set(takewhile(lambda word: word != "--", words))
    fail = partial(_fail, words, as_json=not options.isdisjoint(("--json", "--jsonl")))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Pipes and files have another encoding on Windows.
            stream.reconfigure(
                encoding="utf-8" if os.name == "nt" else None, errors="backslashreplace"
            )
    try:
        # `obj`: the store keeps the command line of a run. `color`: click would remove texts that look
        # like colour codes; the streams escape all codes already.
        code = group.main(
            words, prog_name="pearl", standalone_mode=False, obj=tuple(words), color=True
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        command = where.command_path if where else "pearl"
        message = _message_with_origin(error).replace("\n", " ")
        return fail("UsageError", message, f"see '{command} --help'", error.exit_code)
    except PearlError as error:
        return fail(*error.to_dict().values())
    except (click.Abort, KeyboardInterrupt) as error:
        return fail("Interrupted", "interrupted", None, getattr(error, "exit_code", 130))
    except BrokenPipeError:
        _abandon_stdout()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        _abandon_stdout()
        return _fail(words, "OSError", f"cannot write the output: {error.strerror}", "make room", 1)
    except Exception as error:
        if sys.flags.dev_mode and not is_private():
            raise
        import traceback  # late: as the others of `pearl --version`

        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        # The message may quote content.
        message = HIDDEN if is_private() else str(error)
        return fail(
            type(error).__name__,
            f"a bug in PEARL at {place}: {type(error).__name__}: {message}",
            "report it with the traceback of the same command: PYTHONDEVMODE=1 pearl ...",
            1,
        )


def _message_with_origin(error: click.ClickException) -> str:
    """A click error message, with the variable or file that the wrong value comes from."""
    if isinstance(error, click.BadParameter) and error.ctx and error.param and error.param.name:
        name = error.param.name
        source = error.ctx.get_parameter_source(name)
        if source is ParameterSource.ENVIRONMENT and isinstance(error.param.envvar, str):
            return f"Invalid value for {error.param.envvar}: {error.message}"
        if source is ParameterSource.DEFAULT_MAP:
            from pearl.cli.options import PLACES

            path = error.ctx.meta[PLACES][name]
            return f"{path}: Invalid value for '{name}': {error.message}"
    return error.format_message()


def _abandon_stdout() -> None:
    """Prevent the flush at exit, which would fail because the output is closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(
    words: Sequence[str],
    kind: str,
    message: str,
    help: str | None,
    code: int,
    *,
    as_json: bool = False,
) -> int:
    if is_private():  # messages about the command line quote it
        for word in filter(lambda word: " " in word.strip(), words):
            message, help = message.replace(word, "..."), help and help.replace(word, "...")
    if as_json:
        row = {"type": kind, "message": message, "help": help, "exit_code": code}
        try:
            click.echo(to_json({"status": "failed", "error": row}), color=True)
        except OSError:  # stdout is closed or full
            _abandon_stdout()
    click.echo(f"pearl: {message}", err=True, color=True)
    if help:
        click.echo(f"  help: {help}", err=True, color=True)
    return code


def main() -> None:
    """Entry point of the `pearl` command."""
    # Looking for cycles among what imports make takes a tenth of a short command; the default is 700 objects
    gc.set_threshold(50_000)
    # pydantic would look for its plug-ins in every installed package, which takes 20 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Replace closed output, as of a daemon, by the null device; else the next opened file would take its number
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    code = run()
    gc.freeze()  # At the end Python would look again, in what the system frees anyway
    sys.exit(code)
