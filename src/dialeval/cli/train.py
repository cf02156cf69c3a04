"""`dialeval train RECIPE --data CORPUS -o DIR`: the fields of a recipe are its options."""

from __future__ import annotations

import inspect
import json
import shlex
import typing
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from dialeval.cli.arguments import Json, Quiet, option

if TYPE_CHECKING:
    from dialeval.training.recipe import Recipe

Data = Annotated[
    list[Path],
    option(
        "--data",
        help="Learn from this data: a DailyDialog folder, a file in a format that `dialeval data"
        " formats` lists, or a data set by name. Repeat for several.",
    ),
]
Out = Annotated[Path, option("--out", "-o", help="Store the trained model in this directory.")]
Licence = Annotated[
    str | None,
    option(
        help="Name the licence of the data for the card. dialeval knows the licence of a data set"
        " by name."
    ),
]
RESUME = "Repeat the command to resume an interrupted training."


class Recipes(typer.core.TyperGroup):
    """A group that imports the recipes only when one of them is needed, not with every verb."""

    _ready = False

    @property  # type: ignore[override]
    def commands(self) -> dict[str, Any]:
        if not self._ready:
            from dialeval.training.recipes import RECIPES, find_recipe

            app = typer.Typer(rich_markup_mode="markdown")
            app.callback()(lambda: None)
            for name in RECIPES:
                app.command(name)(_verb(find_recipe(name)))
            group: Any = typer.main.get_command(app)
            self._made.update(group.commands)
            self._ready = True
        return self._made

    @commands.setter
    def commands(self, given: dict[str, Any]) -> None:
        self._made: dict[str, Any] = dict(given)


app = typer.Typer(
    cls=Recipes,
    rich_markup_mode="markdown",
    help="Train a model on your own dialogues or ratings.",
    no_args_is_help=True,
)


@app.callback()
def train() -> None:
    """Train a model on your own dialogues or ratings."""


def _verb(recipe: type[Recipe[Any]]) -> Callable[..., None]:
    """Makes a command whose options are the fields of the recipe."""
    from dialeval.training.recipe import option_fields

    hints = typing.get_type_hints(recipe)
    own = [_parameter(field, hints[field.name], recipe) for field in option_fields(recipe)]
    shared = inspect.signature(_shared).parameters
    first, last = [shared["data"], shared["out"]], [shared["licence"], shared["as_json"]]
    parameters = [*first, *own, *last, shared["quiet"]]

    def verb(**given: Any) -> None:
        _train(recipe, **given)

    annotations = typing.get_type_hints(_shared, include_extras=True)
    for parameter in own:
        annotations[parameter.name] = parameter.annotation
    verb.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(annotation=annotations[one.name]) for one in parameters]
    )
    verb.__annotations__ = annotations
    use = f" Use the result: {recipe.usage.format(metric=recipe.metric, out='DIR')}."
    verb.__doc__ = f"{inspect.getdoc(recipe)}\n\n{use.strip()} {RESUME}"
    return verb


def _parameter(field: Any, hint: Any, recipe: type[Recipe[Any]]) -> inspect.Parameter:
    flag = f"--{field.name.replace('_', '-')}"
    if hint is bool and field.default:
        flag = f"{flag}/--no-{flag[2:]}"
    about = typer.Option(
        flag,
        help=field.metadata["summary"].format(recipe=recipe),
        min=field.metadata["low"],
        max=field.metadata["high"],
        show_default=field.default not in (None, ""),
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[hint, about],
    )


def _shared(
    *,
    data: Data,
    out: Out,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Declares the options that every recipe takes besides its own."""


def _train(
    recipe: type[Recipe[Any]],
    *,
    data: list[Path],
    out: Path,
    licence: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    from dialeval.cli.terminal import say
    from dialeval.training.card import shown_score
    from dialeval.training.recipe import Progress
    from dialeval.training.run import train

    silent = quiet or as_json

    class Screen(Progress):
        """Reports a training on the screen."""

        def say(self, line: str) -> None:
            if not silent:
                say(line, stderr=True)

        def counting(self, what: str) -> AbstractContextManager[Callable[[int, int], None]]:
            from dialeval.cli.terminal import counting_bar

            return counting_bar(what, quiet=silent)

        def training(self) -> AbstractContextManager[Callable[[Any, int], None]]:
            from dialeval.cli.terminal import training_bar

            return training_bar(quiet=silent)

    card = train(recipe.name, data, out, licence=licence, progress=Screen(), **options)
    if as_json:
        typer.echo(json.dumps({"model": str(out), "scores": card.scores}, indent=2))
    elif not quiet:
        for name, value in card.scores.items():
            say(f"{name.replace('_', ' ')}: {shown_score(value)}")
        place = shlex.quote(str(out))
        say(f"Use it: {recipe.usage.format(metric=recipe.metric, out=place)}")
