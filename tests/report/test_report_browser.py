"""The page in a real browser: what the slider shows is what the search proves, and everything can be read."""

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_report import contributions, costs, full_report

from binas.report.page import Reference, ReportData, write_report
from binas.report.plots import plot_frontier
from binas.search import SearchProblem, best_architectures, evaluate, frontier, solve
from binas.search.limits import Limit
from binas.search.surroundings import prices
from binas.space import load_space
from binas.tables import Column, Contributions, Cost, CostTable, parse_unit
from binas.testing.paper_example import paper_contributions, paper_costs

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "</script><img src=x onerror='window.hacked = 1'>"
PROBLEM = SearchProblem.build(contributions(), costs())
SIZES = {"phone": (360, 740), "desktop": (1280, 900)}


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Reports by name, written once."""
    folder = tmp_path_factory.mktemp("reports")
    paper, macro = load_space("imagenet-mbconv"), load_space("nas-bench-macro")
    made = Column.build(macro, lambda s, i: 0.1 * i, lambda s, b, c: 0.2 * c * (1 + s))
    size = Cost("size", parse_unit("1"), 0.0, Column.build(macro, lambda s, i: 0.0, lambda s, b, c: 1.0 + c))
    reports = {
        "full": full_report(),
        "paper": ReportData(paper, paper_contributions(paper), paper_costs(paper), "latency"),
        "names": ReportData(
            macro, Contributions(macro, 90.0, made), CostTable(macro, {"size": size}), "size"
        ),
        "hostile": replace(
            full_report(),
            title=HOSTILE,
            config=HOSTILE,
            references=(Reference(HOSTILE, HOSTILE, 80.0, 1.0),),
            samples=None,
        ),
    }
    for name, data in reports.items():
        write_report(data, folder / f"{name}.html")
    plot_frontier(frontier(PROBLEM, "latency"), folder / "plot.html")
    return {name: folder / f"{name}.html" for name in (*reports, "plot")}


@pytest.fixture
def show(browser, files):
    """Opens a report from disk; afterwards nothing may have gone wrong or been asked of any network."""
    problems, pages = [], []

    def opened(name="full", size="desktop", scheme="light"):
        width, height = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: _remember(request.url, problems))
        page.goto(Path(files[name]).as_uri())
        page.wait_for_selector(".plot svg")
        return page

    yield opened
    for page in pages:
        page.close()
    assert problems == []


def _remember(url, problems):
    if not url.startswith(("file:", "data:")):
        problems.append(f"asked for {url}")


def shown(page):
    return page.locator("#architecture").inner_text()


def set_limit(page, limit):
    page.locator("#exact").fill(str(limit))
    page.locator("#exact").press("Enter")


def is_proven_best(problem, cost, limit, text):
    """Whether a network reaches what an independent solve at this limit reaches."""
    best = solve(problem.with_limits([Limit(cost, limit)]))
    found = evaluate(best.problem, problem.space.parse(text))
    return found.feasible and found.accuracy == pytest.approx(best.accuracy, abs=1e-9)


def test_the_slider_shows_the_network_that_the_search_proves(show):
    page = show()
    seen = set()
    for limit in (0.4, 0.55, 0.75, 0.9, 1.2, 1.5):
        page.locator("#limit").fill(str(limit))
        assert is_proven_best(PROBLEM, "latency", limit, shown(page)), limit
        seen.add(shown(page))
    assert len(seen) == 6


def test_the_paper_s_frontier_at_exact_limits(show):
    space = load_space("imagenet-mbconv")
    problem = SearchProblem.build(paper_contributions(space), paper_costs(space))
    page = show("paper")
    for limit in (30, 45, 61.2345):
        set_limit(page, limit)
        assert is_proven_best(problem, "latency", limit, shown(page))
    costs_shown = page.locator(".facts").first.inner_text()
    assert "61.2" in costs_shown
    assert "MMACs" in costs_shown


def test_limits_beyond_both_ends_show_the_ends(show):
    page = show()
    set_limit(page, 0.0001)
    cheapest = shown(page)
    assert page.get_by_role("button", name="Cheaper").is_disabled()
    set_limit(page, 1000)
    assert shown(page) != cheapest
    assert page.get_by_role("button", name="Better").is_disabled()
    assert is_proven_best(PROBLEM, "latency", 1000, shown(page))


def test_keyboard_and_buttons_move_the_limit(show):
    page = show()
    slider = page.locator("#limit")
    slider.focus()
    before = float(slider.input_value())
    page.keyboard.press("ArrowRight")
    after = float(slider.input_value())
    assert after - before == pytest.approx(float(slider.get_attribute("step")))
    assert is_proven_best(PROBLEM, "latency", after, shown(page))
    assert f"{after:g}" in slider.get_attribute("aria-valuetext")
    page.keyboard.press("End")
    assert is_proven_best(PROBLEM, "latency", 1000, shown(page))
    last = shown(page)
    page.get_by_role("button", name="Cheaper").click()
    assert shown(page) != last


def test_clicking_the_frontier_sets_the_limit(show):
    page = show()
    before = shown(page)
    page.locator("#explore .plot svg").click(position={"x": 480, "y": 200})
    assert shown(page) != before
    assert is_proven_best(PROBLEM, "latency", float(page.locator("#exact").input_value()), shown(page))


def test_price_and_runner_ups_are_those_of_the_search(show):
    page = show()
    problem = PROBLEM.with_limits([Limit("latency", 0.9)])
    set_limit(page, 0.9)
    price = next(iter(prices(solve(problem))))
    text = page.locator("#price").inner_text().replace("\u00a0", " ")
    assert text.startswith(f"{price.more:g} ms more buys +{price.gain:.3f} points")
    titles = page.locator("#runners li").evaluate_all("items => items.map(item => item.title)")
    assert titles == [str(item.architecture) for item in best_architectures(problem, 5).items[1:]]


def test_the_drawing_has_a_block_for_every_active_block(show):
    page = show("paper")
    set_limit(page, 45)
    stages = [stage.split("-") for stage in shown(page).split("_")]
    drawn = page.locator("#network .stage")
    assert drawn.count() == len(stages)
    for i, names in enumerate(stages):
        blocks = drawn.nth(i).locator(".block:not(.unused)")
        assert blocks.count() == len(names)
        for b, name in enumerate(names):
            assert (
                blocks.nth(b).get_attribute("title").startswith(f"Block {b + 1}: {name}, expansion {name[1]}")
            )
            assert blocks.nth(b).locator(".badge").count() == name.endswith("se")
            assert blocks.nth(b).locator("circle").count() == int(name[3]) ** 2


def test_wider_blocks_are_drawn_wider(show):
    page = show("paper")
    set_limit(page, 60)
    widths = {}
    for block in page.locator("#network .block:not(.unused)").all():
        widths.setdefault(block.locator("b").inner_text(), set()).add(round(block.bounding_box()["width"]))
    sizes = sorted((int(label[1:]), min(found), max(found)) for label, found in widths.items())
    assert len(sizes) > 1
    assert all(one[2] < two[1] for one, two in itertools.pairwise(sizes))


def test_a_chosen_network_opens_in_the_explorer(show):
    page = show()
    page.get_by_role("button", name="Show in the explorer").nth(1).click()
    assert shown(page) == str(full_report().chosen[1].architecture)


def test_sections_are_those_there_are_numbers_for(show):
    ids = "items => items.map(item => item.id)"
    everything = ["chosen", "explore", "insights", "formula", "ranking", "training", "time", "again"]
    assert show().locator("main > section").evaluate_all(ids) == everything
    assert show("paper").locator("main > section").evaluate_all(ids) == ["explore", "insights"]


def test_a_plot_on_a_page_of_its_own_names_the_networks(show):
    titles = show("plot").locator(".plot svg title").all_text_contents()
    cheapest = frontier(PROBLEM, "latency").architecture(0)
    assert titles[0].startswith(f"{cheapest}: ")


def test_a_space_of_other_options_is_drawn_with_names(show):
    page = show("names")
    set_limit(page, 4)
    assert page.locator("#network .block", has_text="id").count() >= 1


def test_hostile_names_are_shown_as_text(show):
    page = show("hostile")
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img").count() == 0


OVERFLOWING = """() => {
  document.querySelectorAll("details").forEach((item) => (item.open = true));
  const wide = innerWidth, found = [];
  if (document.documentElement.scrollWidth > wide) found.push(`page ${document.documentElement.scrollWidth}`);
  for (const item of document.querySelectorAll("body *")) {
    if (item.closest(".unseen, .skip, script, title")) continue;
    const box = item.getBoundingClientRect();
    const name = `${item.tagName}.${item.getAttribute("class") || ""} ${(item.textContent || "").slice(0, 40)}`;
    if (box.width && (box.right > wide + 0.5 || box.left < -0.5)) found.push(`outside: ${name}`);
    const clips = getComputedStyle(item).overflowX !== "visible" && !(item instanceof SVGElement);
    if (clips && item.tagName !== "INPUT" && item.scrollWidth > item.clientWidth + 1) found.push(`clipped: ${name}`);
    if (item.tagName === "text") {
      const sheet = item.ownerSVGElement.getBoundingClientRect();
      if (box.left < sheet.left - 0.5 || box.right > sheet.right + 0.5) found.push(`cut off: ${name}`);
    }
    const holder = item.matches(".face, button, .badge, dd, dt, h1, h2, h3, h4, code") && item;
    if (holder && holder.scrollWidth > holder.clientWidth + 1 && holder.clientWidth) found.push(`spills: ${name}`);
  }
  return found;
}"""


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("name", ["full", "paper", "names"])
def test_text_fits(show, name, size):
    page = show(name, size)
    assert page.evaluate(OVERFLOWING) == []


# Relative luminance and contrast as WCAG 2.2 defines them; 3 is enough for large text.
LOW_CONTRAST = """() => {
  document.querySelectorAll("details").forEach((item) => (item.open = true));
  const parse = (text) => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    const unit = text.startsWith("color(") ? numbers.slice(0, 3) : numbers.slice(0, 3).map((part) => part / 255);
    return { rgb: unit, alpha: numbers.length > 3 ? numbers[3] : 1 };
  };
  const luminance = ({ rgb }) => {
    const [r, g, b] = rgb.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (item) => {
    for (let node = item; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.alpha > 0.99) return colour;
    }
    return parse("rgb(255, 255, 255)");
  };
  const found = [], seen = { texts: 0 };
  for (const item of document.querySelectorAll("body *")) {
    const own = [...item.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || item.closest("script, title, .unseen, .skip, :disabled") || !item.getClientRects().length) continue;
    const style = getComputedStyle(item);
    const colour = parse(item.tagName === "text" ? style.fill : style.color);
    const [light, dark] = [luminance(colour), luminance(behind(item))].sort((one, two) => two - one);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (light + 0.05) / (dark + 0.05);
    seen.texts += 1;
    const name = `${item.tagName}.${item.getAttribute("class")} ${item.textContent.slice(0, 30)}`;
    if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${name}`);
  }
  return { found, texts: seen.texts };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(show, scheme):
    page = show("full", scheme=scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for limit in (0.5, 0.9, 1.5):
        set_limit(page, limit)
        result = page.evaluate(LOW_CONTRAST)
        assert result["found"] == []
        assert result["texts"] > 200


def test_the_theme_can_be_switched(show):
    page = show(scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"


def test_everything_has_a_name_for_those_who_cannot_see_it(show):
    page = show()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, button, svg[role=img], nav, section, table, a")].filter((item) => {
          const label = item.getAttribute("aria-label") || item.getAttribute("aria-labelledby");
          return !(label || item.labels?.length || item.caption || item.textContent.trim());
        }).map((item) => item.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    levels = page.locator("h1, h2, h3, h4").evaluate_all(
        "items => items.map(item => Number(item.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(two - one <= 1 for one, two in itertools.pairwise(levels))


def test_the_numbers_on_the_page_are_those_of_the_report(show):
    page = show()
    numbers = json.loads(page.locator("#numbers").text_content())
    text = page.locator("#ranking").inner_text()
    assert f"{numbers['ranking']['estimators'][0]['kendall']['value']:.3f}" in text
    assert f"{numbers['ranking']['noise_ceiling']['kendall']:.3f}" in text
    assert "1.20\u00a0%" in page.locator("#formula").inner_text()
    assert "4\u00a0min 35\u00a0s" in page.locator("#time").inner_text()
