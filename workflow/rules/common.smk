# Helpers of the rules: configuration, cells, digests. Rules declare, these functions decide.
import os
import re
import sys
import uuid

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake_interface_executor_plugins.settings import ExecMode

from benchmarks.data import names as dataset_names
from benchmarks.data.cards import all_cards
from benchmarks.data.prepared import forget_unavailable
from benchmarks.data.synthetic import NAMES as SYNTHETIC
from benchmarks.data.verify import MODE_VARIABLE, RUN_VARIABLE
from benchmarks.common.atomic import sweep
from benchmarks.common.schema import InvalidDocumentError, load_yaml
from benchmarks.papers.artefacts import all_artefacts
from benchmarks.papers.spec import paper_folders, sources
from benchmarks.records.cell import Cell
from benchmarks.render.page import template_digest
from workflow.config import check, check_pairs, plan, swept, with_own_definitions
from workflow.console import attach, closing_words, hush
from workflow.preflight import check_targets, missing_files, missing_here
from workflow.reference import reference_digest
from workflow.remaining import law_of
from workflow.resources import announce, needed
from workflow.runtime.cluster import continue_submitted, kept_outputs
from workflow.runtime.devices import resolve
from workflow.runtime.digest import code_digest
from workflow.runtime.resume import (
    OUTPUT_FOLDERS,
    before_execution,
    clear_after_kill,
    clear_scratch,
)
from workflow.runtime.seals import remove_damaged
from workflow.runtime.stop import Stop

IS_MAIN = workflow.exec_mode == ExecMode.DEFAULT
CONFIG_NAME = " + ".join(str(f) for f in workflow.configfiles) or "the configuration"

try:
    check_targets(config, [str(f) for f in workflow.overwrite_configfiles])
    OWN = [load_yaml(file) for file in workflow.overwrite_configfiles]
    SETTINGS = check(with_own_definitions(config, OWN), CONFIG_NAME)
    USER_CARDS = SETTINGS["define"]["datasets"]
    USER_PAPERS = SETTINGS["define"]["papers"]
    PAPERS = paper_folders(USER_PAPERS)
    ARTEFACTS = all_artefacts(USER_PAPERS)
    CARDS = all_cards(USER_CARDS)
    JOBS = {
        job.cell: job for job in plan(SETTINGS, CONFIG_NAME, dataset_names(USER_CARDS))
    }
    if IS_MAIN:
        check_pairs(JOBS.values(), CONFIG_NAME, SETTINGS["misfits"])
        announce(JOBS.values(), CARDS, CONFIG_NAME)
        for line in missing_files(dict.fromkeys(cell.dataset for cell in JOBS), CARDS):
            logger.warning(line)
except InvalidDocumentError as error:
    raise WorkflowError(str(error))


def start_afresh(plugin):
    hush(workflow)
    Stop(workflow).install()
    if not clear_after_kill(Path(".snakemake"), Path("."), keep=kept_outputs()):
        return  # another run is at work here: what there is may be its own
    continue_submitted(workflow, plugin)
    clear_scratch(Path("results/runs"))
    for folder in OUTPUT_FOLDERS:
        sweep(folder)
    forget_unavailable("results/data")
    for path in remove_damaged(map(Path, OUTPUT_FOLDERS)):
        print(f"{path} is not what was written; it is made again", file=sys.stderr)


def say_what_is_missing():
    for line in missing_here(JOBS.values(), CARDS, SETTINGS["mirror"]):
        logger.warning(f"missing here: {line}")


# Read by whoever opens prepared data, in this process or one it starts.
os.environ[MODE_VARIABLE] = SETTINGS["verify"]
if IS_MAIN:
    os.environ[RUN_VARIABLE] = uuid.uuid4().hex
    before_execution(workflow, start_afresh, say_what_is_missing)


onstart:
    attach(
        workflow,
        law_of({cell: (job.base, job.variants) for cell, job in JOBS.items()}),
    )


onsuccess:
    if Path("results/report.html").exists() and Path("results/runs.csv").exists():
        print(closing_words(), file=sys.stderr)


# A pattern of the variants that are made from other cells; of none, one that nothing matches.
ENSEMBLES = "|".join(
    sorted({re.escape(cell.variant) for cell, job in JOBS.items() if job.members})
)
ENSEMBLES = f"(?:{ENSEMBLES})" if ENSEMBLES else "(?!)"
CELL_FOLDER = "results/runs/{dataset}/{base}/{variant}/seed{seed}"


wildcard_constraints:
    dataset=r"[^/]+",
    base=r"[^/]+",
    variant=r"[^/]+",
    seed=r"\d+",


def get_job(wildcards):
    cell = Cell(
        wildcards.dataset, wildcards.base, wildcards.variant, int(wildcards.seed)
    )
    if cell not in JOBS:
        raise WorkflowError(
            f"{cell} is not a cell of {CONFIG_NAME}. Add it under 'cells:' there, or name the "
            "file that has it: snakemake --cores all TARGET --configfile FILE"
        )
    return JOBS[cell]


def get_recipe(wildcards):
    return get_job(wildcards).recipe()


def get_cell_code(wildcards):
    return code_digest(*get_job(wildcards).targets)


def get_shards(wildcards):
    # The fit of a cell in one piece is part of its own job.
    of = get_job(wildcards).shards
    folder = CELL_FOLDER.format(**wildcards)
    return [f"{folder}/shards/{shard}of{of}" for shard in range(of)] if of > 1 else []


def get_member_files(name):
    def get(wildcards):
        return [
            f"results/runs/{cell.path}/{name}" for cell in get_job(wildcards).members
        ]

    return get


def get_resources(wildcards):
    return [f"results/data/{name}/meta.json" for name in needed(get_job(wildcards))]


def get_budget(key):
    def get(wildcards):
        return get_job(wildcards).budget[key]

    return get


def get_memory(wildcards):
    return int(get_job(wildcards).budget["memory_mb"])


def get_scheduler_memory(wildcards):
    # More than the cell's own limit: its supervisor and Snakemake's processes count there, too.
    return get_memory(wildcards) + 1000


def get_gpu(wildcards):
    return int(resolve(get_job(wildcards).budget["device"]).startswith("cuda"))


def get_wall(wildcards):
    # Snakemake's resources are whole numbers or text; a budget may be a fraction of a second.
    return str(get_job(wildcards).budget["wall_s"])


def get_runtime_minutes(wildcards):
    # A scheduler's wall must be longer than the supervisor's, which ends the cell in words.
    return int(get_job(wildcards).budget["wall_s"] // 60) + 5


def get_cell_files(name):
    return [f"results/runs/{cell.path}/{name}" for cell in JOBS]


def get_files_on_dataset(name):
    def get(wildcards):
        cells = (cell for cell in JOBS if cell.dataset == wildcards.dataset)
        return [f"results/runs/{cell.path}/{name}" for cell in cells]

    return get


def get_datasets():
    return list(dict.fromkeys(cell.dataset for cell in JOBS))


def get_needed_files(artefacts):
    # Of the whole run; norms are read beside the label counts of the data.
    needs = {need for artefact in artefacts for need in artefact.needs}
    tables = [need for need in ("cells", "intervals", "runs") if need in needs]
    data = get_datasets() if needs & {"data", "norms", "predictions"} else []
    return [
        *(f"results/{table}.csv" for table in tables),
        *(f"results/data/{dataset}/meta.json" for dataset in data),
    ]


def get_needed_cell_files(artefacts):
    # One seed per method is enough to see the trend; comparisons are of all seeds.
    needs = {need for artefact in artefacts for need in artefact.needs}
    first = {}
    for cell in JOBS:
        first.setdefault((cell.dataset, cell.base, cell.variant), cell)
    files = [
        f"results/runs/{cell.path}/{need}.npz"
        for need in ("norms", "predictions")
        if need in needs
        for cell in first.values()
    ]
    return [*files, *(get_cell_files("instance.npz") if "instances" in needs else [])]


def get_paper_files(paper):
    # What a paper is read from; Snakemake watches a user's code by its files, ours by digest.
    own = PAPERS[paper].glob("*.py") if paper in USER_PAPERS else []
    return [*sources(paper, USER_PAPERS), *map(str, own)] if paper else []


def get_artefact_code(paper):
    ours = Path(ROOT, "benchmarks/papers", paper or "-", "artefacts.py").exists()
    return code_digest(f"benchmarks.papers.{f'{paper}.' if ours else ''}artefacts")


def get_artefact_files():
    artefacts = [artefact for declared in ARTEFACTS.values() for artefact in declared]
    return [path for artefact in artefacts for path in artefact.files]


def get_shown_files(artefacts, paper):
    # In the archive of `snakemake --report`: of a figure its drawing, of a table its numbers.
    shown = []
    for artefact in artefacts:
        suffix = ".svg" if artefact.kind == "figure" else ".csv"
        for path in artefact.files:
            if not path.endswith(suffix):
                shown.append(path)
                continue
            marked = report(
                path,
                caption=f"../report/{artefact.kind}.rst",
                category=f"{artefact.kind.capitalize()}s",
                subcategory=paper or "every run",
                labels={
                    "name": artefact.name,
                    "about": artefact.caption or artefact.name,
                },
            )
            shown.append(marked)
    return shown


def get_settings(artefacts):
    names = list(dict.fromkeys(n for artefact in artefacts for n in artefact.settings))
    return swept(JOBS.values(), names) if names else {}


def get_dataset_code(wildcards):
    if wildcards.dataset in SYNTHETIC:
        return code_digest("benchmarks.data.synthetic", "benchmarks.data.prepared")
    card = CARDS[wildcards.dataset]
    if card.embedding is not None:
        # Encoding takes long: not again for a change of how data are fetched.
        return code_digest("benchmarks.data.embed", "benchmarks.data.prepared")
    return code_digest("benchmarks.data.prepare")


def get_made_of(wildcards):
    # The dataset that another one is derived from; nothing for most.
    card = CARDS.get(wildcards.dataset)
    of = card.made_of if card is not None else None
    return f"results/data/{of}/meta.json" if of is not None else []


def get_card_digest(wildcards):
    if wildcards.dataset in SYNTHETIC:
        return None
    return CARDS[wildcards.dataset].digest()
