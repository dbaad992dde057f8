# What the run will cost. It has no input, so that it starts no work, and declares no output, so that
# it always answers: results/plan.csv and results/plan.html are written anew.
rule plan:
    log:
        "results/logs/plan.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=SETTINGS,
        source=CONFIG_NAME,
    script:
        "../scripts/plan.py"
