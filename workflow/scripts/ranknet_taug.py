from pathlib import Path

from benchmarks.papers.ranknet_taug.page import write_page
from benchmarks.records.cell import Cell
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    files = [Path(path) for path in snakemake.input.predictions]
    cells = [Cell.from_path(str(path.parent)) for path in files]
    write_page(
        Path(snakemake.input.cells),
        Path(snakemake.input.intervals),
        Path(snakemake.input.norms),
        [(cell.dataset, cell.base, cell.variant) for cell in cells],
        files,
        snakemake.params.settings,
        Path(snakemake.output.page).parent,
        Path(snakemake.output.figures[0]).parent,
    )
