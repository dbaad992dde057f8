from pathlib import Path

from benchmarks.papers.artefacts import artefacts_of, write_artefacts
from benchmarks.records.cell import Cell
from benchmarks.records.results import Results
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    params = snakemake.params
    folders = [str(Path(path).parent) for path in snakemake.input.get("cells", [])]
    cells = [Cell.from_path(folder) for folder in dict.fromkeys(folders)]
    results = Results("results", cells, params.settings, params.ks)
    declared = artefacts_of(params.paper, params.papers)
    wanted = [artefact for artefact in declared if artefact.needs_cells == params.trained]
    write_artefacts(wanted, results, *snakemake.output.get("page", []))
