"""The report of a large run in a browser: 200 cells, five papers, hostile label names."""

import json
import re

import pytest
from browser import assert_sound
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks.speed.report import LIMIT
from workflow.report import Run, render
from workflow.studies.made_up_results import SCRIPT, write_results

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    assert len(write_results(folder)) == 200
    return folder


@pytest.fixture(scope="module")
def page(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        text = render(Run(folder / "results", {}))
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shown(browser, page):
    browser.open(page)
    return browser


def rows(browser, table):
    script = "return [...document.querySelectorAll(`table[data-name='${arguments[0]}'] tbody tr`)]"
    return browser.run(script + ".filter(r => !r.hidden).map(r => r.id)", table)


def test_it_is_one_small_file(page):
    assert page.stat().st_size < LIMIT


def test_a_table_sorts_both_ways(shown):
    column = "return [...document.querySelectorAll(\"table[data-name='methods'] tbody tr\")]"
    column += ".map(r => +r.querySelector('[data-m=\"PSP@3\"]').dataset.v)"
    header = shown.driver.find_element(
        By.XPATH, "//table[@data-name='methods']//button[text()='PSP@3']"
    )
    before = shown.run(column)
    header.click()
    assert shown.run(column) == sorted(before, reverse=True) != before
    header.click()
    assert shown.run(column) == sorted(before)
    assert header.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"


def test_a_table_filters_by_words_and_says_how_many_are_left(shown):
    search = shown.driver.find_element(By.CSS_SELECTOR, "#methods input[type=search]")
    search.send_keys("bonsai pw-cb")
    assert len(rows(shown, "methods")) == 4
    assert "4 of 100 rows" in shown.driver.find_element(By.ID, "methods").text
    search.clear()
    search.send_keys("x", Keys.BACKSPACE)
    assert len(rows(shown, "methods")) == 100


def test_columns_can_be_chosen(shown):
    cell = "return !document.querySelector(\"#methods td[data-m='R@3']\").hidden"
    assert not shown.run(cell)
    shown.driver.find_element(By.CSS_SELECTOR, "#methods .column-choice summary").click()
    shown.driver.find_element(
        By.XPATH, "//section[@id='methods']//label[contains(., 'R@3')]"
    ).click()
    assert shown.run(cell)


def test_the_convention_switch_changes_our_values_and_goes_back(shown):
    data = json.loads(shown.run("return document.getElementById('page-data').textContent"))
    cell = "return document.querySelector(`${arguments[0]} [data-m='PSP@3'] button.n`).textContent"
    switch = "const s = document.getElementById('convention'); s.value = arguments[0];"
    switch += "s.dispatchEvent(new Event('change'))"
    before = shown.run(cell, "#s0")
    shown.run(switch, "pyxclib")
    assert shown.run(cell, "#s0") == f"{data['values']['s0']['pyxclib']['PSP@3']:.2f}" != before
    assert "pyxclib" in shown.driver.find_element(By.ID, "convention-note").text
    shown.run(switch, "")
    assert shown.run(cell, "#s0") == before
    assert not shown.driver.find_element(By.ID, "convention-note").is_displayed()


def test_a_number_opens_the_passport_by_mouse_and_by_keyboard(shown):
    dialog = shown.driver.find_element(By.ID, "passport")
    number = shown.driver.find_element(By.CSS_SELECTOR, "#s1 [data-m='PSP@3'] button.n")
    shown.run("arguments[0].scrollIntoView({block: 'center'})", number)
    number.click()
    said = dialog.text
    for expected in (
        *("EURLex-4K/DiSMEC/PW/seed0/run.json", "0" * 40, "d" * 64, "compile", "peak memory"),
        *("budget", "device", "95 % interval", "2 seeds", "line 19"),
        "snakemake --cores all --forcerun results/runs/EURLex-4K/DiSMEC/PW/seed0/run.json",
    ):
        assert expected in said, expected
    dialog.send_keys(Keys.ESCAPE)
    assert not dialog.is_displayed()
    number.send_keys(Keys.ENTER)
    assert dialog.is_displayed()
    dialog.send_keys(Keys.ESCAPE)


def test_links_lead_there_and_back(shown):
    row = shown.driver.find_element(By.ID, "s0")
    link = row.find_element(By.CSS_SELECTOR, "td:last-child a")
    target = link.get_attribute("href").partition("#")[2]
    shown.run("arguments[0].click()", link)
    there = shown.driver.find_element(By.ID, target)
    assert shown.run("return location.hash") == f"#{target}"
    assert there.is_displayed()
    back = there.find_element(By.CSS_SELECTOR, "th a")
    shown.run("arguments[0].click()", back)
    assert shown.run("return location.hash") == "#s0"


def test_a_finding_of_the_audit_is_linked_from_the_value_it_concerns(shown):
    link = shown.driver.find_element(By.CSS_SELECTOR, "td.value .finding-link")
    shown.run("arguments[0].click()", link)
    finding = shown.driver.find_element(By.ID, shown.run("return location.hash.slice(1)"))
    assert finding.is_displayed()


def test_verdicts_can_be_read_without_pointing(shown):
    verdicts = shown.run(
        "return [...document.querySelectorAll('td.value .verdict')].map(v => v.textContent.trim())"
    )
    assert len(verdicts) > 100
    assert all(
        re.search("reproduced|same direction|outside tolerance|contradicted", v) for v in verdicts
    )


def test_what_the_run_cannot_judge_is_one_folded_line_with_a_command(shown):
    folded = shown.driver.find_element(By.CSS_SELECTOR, ".closed-papers")
    assert not folded.find_element(By.TAG_NAME, "p").is_displayed()
    assert "not run" not in shown.driver.find_element(By.ID, "verdicts").text


def test_a_script_in_a_label_name_stays_text(shown):
    shown.run(
        "const s = document.getElementById('moved-method'); s.value = 's1';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert SCRIPT in shown.driver.find_element(By.ID, "moved").text
    assert "overrun" not in shown.driver.title


def test_the_tail_follows_its_controls(shown):
    def change(control, value):
        shown.run(
            "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('change'))",
            *(control, value),
        )

    first = rows(shown, "bins")
    text = shown.driver.find_element(By.CSS_SELECTOR, "table[data-name=bins]").text
    change("tail-metric", "PSP@5")
    change("tail-dataset", "Amazon-670K")
    change("tail-bins", "deciles")
    assert len(rows(shown, "bins")) == len(first) == 25
    assert shown.driver.find_element(By.CSS_SELECTOR, "table[data-name=bins]").text != text
    assert shown.complaints() == []


def test_nothing_overflows_complains_or_asks_for_the_network(browser, page):
    assert_sound(browser, page)


def test_deciles_have_numbers_too(shown):
    def choose(value):
        shown.run(
            "const s = document.getElementById('tail-bins'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'))",
            value,
        )

    choose("deciles")
    table = shown.driver.find_element(By.CSS_SELECTOR, "table[data-name=bin-deciles]")
    assert table.is_displayed()
    assert "decile 10" in table.text
    assert len(table.find_elements(By.CSS_SELECTOR, "tbody tr")) == 25
    assert not shown.driver.find_element(By.CSS_SELECTOR, "table[data-name=bins]").is_displayed()
    choose("parts")
    assert not table.is_displayed()


def test_what_hovering_shows_is_in_the_passport_too(shown):
    cell = shown.driver.find_element(
        By.XPATH, "//td[contains(@class, 'value') and contains(@title, 'tolerance')]"
    )
    said = cell.get_attribute("title")
    assert "seed" in said
    shown.run("arguments[0].querySelector('button.n').click()", cell)
    dialog = shown.driver.find_element(By.ID, "passport")
    assert said in dialog.text
    dialog.send_keys(Keys.ESCAPE)


def test_names_on_the_front_do_not_cover_each_other(shown):
    boxes = shown.run(
        "return [...document.querySelectorAll('[data-chart=headline] .panel')].map(p =>"
        "[...p.querySelectorAll('.mark-text text')].filter(t => /PW|RankNet/.test(t.textContent)"
        " && !t.closest('.role-legend, .role-axis')).map(t => {"
        "const r = t.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }))"
    )
    assert any(len(panel) for panel in boxes)
    for panel in boxes:
        for i, (left, top, right, bottom) in enumerate(panel):
            for other in panel[:i]:
                apart = left >= other[2] or right <= other[0] or top >= other[3] - 2
                assert apart or bottom <= other[1] + 2


def test_on_paper_tables_are_whole_and_controls_are_gone(shown):
    shown.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not shown.driver.find_element(By.ID, "bar").is_displayed()
        cut = (
            "return [...document.querySelectorAll('figure.table')].filter(f => f.checkVisibility()"
        )
        assert shown.run(cut + " && f.scrollHeight > f.clientHeight + 2).length") == 0
    finally:
        shown.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
