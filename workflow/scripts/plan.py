from pathlib import Path

from benchmarks.data import names
from benchmarks.data.cards import all_cards
from workflow.config import plan
from workflow.planning.page import as_text, write_plan
from workflow.planning.plan import Machine, Plan, earlier_runs
from workflow.preflight import missing_here

settings, define = snakemake.params.settings, snakemake.params.settings["define"]
cards = all_cards(define["datasets"])
jobs = plan(settings, snakemake.params.source, names(define["datasets"]))
runs, left_out = earlier_runs(cards, define)
made = Plan(
    jobs, cards, runs, Machine.of(settings), top_k=settings["top_k"], papers=define["papers"]
)
missing = missing_here(jobs, cards, settings["mirror"])
write_plan(made, "results/plan.csv", "results/plan.html", missing)
text = as_text(made, missing)
Path(snakemake.log[0]).write_text("\n".join([*left_out, text, ""]), encoding="utf-8")
print(text)
