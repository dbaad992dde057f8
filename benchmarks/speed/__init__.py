"""Measurements against named peers, as ratios in one run; programs that nothing imports.

Each module NAME has ``main(argv)``, prints its ratios and writes ``results/speed/NAME.csv``.
"""
