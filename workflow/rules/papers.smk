# Tables and figures that the papers' folders declare. Those that need no training are made apart,
# so that asking for them trains nothing.
for paper, declared in ARTEFACTS.items():
    for trained in (False, True):
        artefacts = [a for a in declared if a.needs_cells == trained]
        if not artefacts:
            continue
        label = f"{paper or 'general'}_{'cells' if trained else 'data'}"

        rule:
            name:
                f"paper_artefacts_{label}"
            input:
                get_paper_files(paper),
                get_needed_files(artefacts),
                cells=get_needed_cell_files(artefacts),
            output:
                get_shown_files(artefacts, paper),
                page=[f"results/tables/{paper}.html"] if trained else [],
            log:
                f"results/logs/artefacts/{label}.log",
            conda:
                "../../environment.yml"
            params:
                paper=paper,
                papers=USER_PAPERS,
                trained=trained,
                settings=get_settings(artefacts),
                ks=SETTINGS["ks"],
                code=get_artefact_code(paper),
            script:
                "../scripts/artefacts.py"
