"""The commands `legged sweep status|resume|table STORE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from legged.app.options import print_path
from legged.errors import DefinitionError, SimulationInterrupt
from legged.output import as_terminal, output_file, replaced, visible, write_table

app = typer.Typer(
    help="Show, resume and print studies that legged.sweep stores in a folder.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Folder = Annotated[Path, typer.Argument(metavar="STORE", help="The folder of a study.", exists=True, file_okay=False)]


@app.command(epilog="Example: legged sweep status results/study")
def status(store: Folder) -> None:
    """Show how many trials are finished, how many have failed, and the core hours that are spent and remain."""
    from legged.sweeps import Study
    from legged.table import Table

    study = Study(store)
    facts = study.status()
    versions = ", ".join(f"{name} {version}" for name, version in facts.pop("versions").items())
    rows = [(name, f"{value:.3g}" if isinstance(value, float) else str(value)) for name, value in facts.items()]
    texts = list(dict.fromkeys(text for chunk in study.facts() for text in chunk["warnings"]))
    notes = (f"Parameters: {', '.join(study.columns)}.", f"Computed with {versions}.", *texts[:5])
    print(Table(f"Study in {store}", ("", ""), tuple(rows), notes).text())


@app.command(epilog="Example: legged sweep resume results/study study.py:study")
def resume(
    store: Folder,
    study: Annotated[str, typer.Argument(help="file.py:NAME, a Sweep or a function without arguments that makes one.")],
) -> None:
    """Compute the missing trials of a store by the study of a program; a store contains no code."""
    import cloudpickle

    from legged.app.selection import load_module
    from legged.sweeps import Sweep

    where, _, name = study.rpartition(":")
    if not where.endswith(".py"):
        raise DefinitionError(f"{study!r} names no study; write file.py:NAME, a Sweep or a function that makes one")
    module = load_module(Path(where))
    cloudpickle.register_pickle_by_value(module)  # workers of a cluster do not have it
    made = getattr(module, name, None)
    made = made() if callable(made) else made
    if not isinstance(made, Sweep):
        raise DefinitionError(f"{name!r} in {where} is no Sweep, and no function that makes one: legged.sweep makes it")
    if made.store.path.resolve() != store.resolve():
        raise DefinitionError(f"{study} is a study in {str(made.store.path)!r}, not in {str(store)!r}")
    try:
        made.compute()
    except SimulationInterrupt as error:
        print(as_terminal(str(error)))
        raise typer.Exit(130) from None
    status(store)


@app.command(epilog="Example: legged sweep table results/study --output table.parquet")
def table(
    store: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .parquet or .csv file instead of the terminal.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only the trials that have failed.")] = False,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows on the terminal.")] = 20,
) -> None:
    """Print the finished trials, or write all of them to a file."""
    import pyarrow.parquet as pq

    from legged.sweeps import Study

    numbers = Study(store).arrow()
    if failed:
        is_failed = [bool(text) for text in numbers["error"].to_pylist()] if "error" in numbers.column_names else []
        numbers = numbers.filter(is_failed)
    if output is None:
        first = numbers.slice(0, rows).to_pandas().set_index("row")
        shown = first.map(lambda x: visible(x, 80) if isinstance(x, str) else x).rename(columns=visible)
        print(as_terminal(shown.to_string()))
        print(f"{len(first)} of {len(numbers)} rows")
    elif output.suffix == ".csv":
        columns = (x.to_pylist() for x in numbers.columns)
        print_path(write_table(output, numbers.column_names, zip(*columns, strict=True)))
    else:
        path = output_file(output, ".parquet")
        with replaced(path) as draft:
            pq.write_table(numbers, draft)
        print_path(path)
