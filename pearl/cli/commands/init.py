"""`pearl init`: a new project folder with a library, examples, a document and questions."""

from __future__ import annotations

from pathlib import Path

import click

from pearl.cli.terminal import notice
from pearl.errors import DataError

TEMPLATE = Path(__file__).parents[1] / "project"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> int:
    """Make FOLDER a project for actions and examples of your own.

    It gets actions, examples, a document, questions and settings that work. Existing files are
    never replaced. The new pearl.toml is trusted until it is changed: `pearl config`.
    """
    from pearl.cli.settings import trust

    paths = sorted(path.relative_to(TEMPLATE) for path in TEMPLATE.rglob("*") if path.is_file())
    for path in paths:
        if (folder / path).exists():
            raise DataError("exists already", path=folder / path, help="name a new folder")
    try:
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("xb") as file:
                file.write((TEMPLATE / path).read_bytes())
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=folder / path) from None
    settings = folder.resolve() / "pearl.toml"
    trust(settings, settings.read_bytes())
    for path in paths:
        click.echo(folder / path)
    notice(f"next: cd {folder}, then follow its README.md")
    return 0
