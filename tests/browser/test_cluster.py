"""The scheduler's page in Chromium: nodes, who waits, reservations, decisions; live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import looking

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Cluster

pytestmark = pytest.mark.browser


def test_every_panel(cluster_page: Page) -> None:
    """Nodes by what is used, held and free; who waits and why; reservations; decisions."""
    looking.expect_text(cluster_page, "#state", "leading, version")
    looking.expect_text(cluster_page, "#totals", "2 nodes1 pod. All are schedulable")
    looking.expect_text(cluster_page, "#totals", "2 CPUs free of 5 CPUs, 2 CPUs reserved")
    looking.expect_text(cluster_page, "#rows", "%, 1 CPU")
    bar = cluster_page.locator('#rows [role="img"]').first
    assert "used" in str(bar.get_attribute("aria-label"))
    looking.expect_text(cluster_page, "#queues", "1 unschedulable")
    looking.expect_text(cluster_page, "#pending", "1 0/2 nodes are available: 2 Insufficient cpu")
    looking.expect_text(cluster_page, "#pending", "d/big priority 0")
    looking.expect_text(cluster_page, "#pending", "requests 64 CPUs")
    looking.expect_text(
        cluster_page, "#reservations", "room Available on n1: 2 CPUs, in use nothing"
    )
    looking.expect_text(cluster_page, "#decisions", "d/web → n")
    looking.expect_text(cluster_page, "#decisions", "reservation room → n1")
    looking.expect_text(cluster_page, "#decisions", "nodes; scores n")
    assert not cluster_page.locator("#together").is_visible()
    assert not cluster_page.locator("#moving").is_visible()


def test_gangs_are_a_table_that_says_why_each_waits(cluster_page: Page, cluster: Cluster) -> None:
    """Those that wait come first; a page without gangs has no such panel."""
    cluster.gang("done", 1)
    looking.expect_text(cluster_page, "#gangs", "d/done")
    assert cluster_page.locator("#together").is_visible()
    looking.expect_text(cluster_page, "#gangs", "Scheduled")
    cluster.gang("late", 3)
    looking.expect_text(cluster_page, "#gang-count", "2 gangs, 1 waiting.")
    looking.expect_text(cluster_page, "#gangs", "d/late-0: gangGroup")
    first, second = (row.split() for row in cluster_page.locator("#gangs tr").all_inner_texts())

    assert first[:3] == ["d/late", "0/3", "Pending"]
    assert " ".join(first[4:]).startswith("d/late-0: gangGroup [d/late] basic check: memberGangs")
    assert second[:3] == ["d/done", "1/1", "Scheduled"]


def test_quotas_are_a_tree_that_says_who_lends_and_who_would_be_called_back(
    cluster_page: Page, cluster: Cluster
) -> None:
    """What a borrower has beyond its minimum; when the owner asks, which pods would go."""
    assert not cluster_page.locator("#shares").is_visible()
    cluster.node("n3", cpu="5")
    cluster.quota("org", "6", "10", is_parent=True)
    cluster.quota("a", "3", "6", parent="org")
    cluster.quota("b", "1", "6", parent="org")
    looking.expect_text(cluster_page, "#share-count", "5 quotas, 0 over their runtime.")
    for number in range(4):
        cluster.pod(f"b{number}", "1", quota="b")
    looking.expect_text(cluster_page, "#quotas", "borrows 3 CPUs from a")
    looking.expect_text(cluster_page, "#quotas", "lends 3 CPUs to b")
    bar = cluster_page.locator('#quotas tr:nth-child(3) [role="img"]').first
    assert str(bar.get_attribute("aria-label")).startswith("4 CPUs of 4 CPUs, min 1 CPU, max 6")
    cluster.pod("mine", "5", quota="a")
    looking.expect_text(cluster_page, "#quotas", "over its runtime by")
    looking.expect_text(cluster_page, "#back-title", "Would be called back, if quotas were")
    looking.expect_text(cluster_page, "#called-back", " of b")
    looking.expect_text(cluster_page, "#lanes", "over its runtime")
    cluster.quota("wrong", "12", "10")
    looking.expect_text(cluster_page, "#idle-title", "Not in force: 1 quota")
    looking.expect_text(cluster_page, "#idle-quotas", "default/wrong resourceKey cpu of quota")


#: This scheduler deschedules nothing: its next state would take the panel away.
_SHOWN = "state => { const draw = drawMoves; window.drawMoves = () => {}; draw(state); }"


def test_moves_are_a_round_plans_and_a_timeline(cluster_page: Page) -> None:
    """As a scheduler that deschedules tells them; what comes from outside is text."""
    step = {"at": "2026-01-02T03:04:05Z", "what": "Eviction: Evicting", "message": "<b>budget</b>"}
    job = {
        "pod": "d/<i>web</i>", "from": "n1", "to": "n2", "phase": "Running", "by": "migrate",
        "timeline": [step],
    }  # fmt: skip
    move = {"pod": "d/a", "node": "n1", "target": "n2", "strategy": "LowNodeLoad", "reason": "hot"}
    plan = {
        "moves": [move], "refused": [{**move, "pod": "d/b", "why": "PDB: none may go"}],
        "notes": [{"strategy": "X", "message": "nothing to do"}],
    }  # fmt: skip
    moves = {
        "name": "<b>room</b>", "for": "d/big", "node": "n1", "mode": "Act", "phase": "Moving",
        "reason": None, "message": "move 2 of 2", "improvement": "0.50",
        "cost": {"disruption": "2.250"}, "members": [],
        "moves": [
            {"pod": "d/a", "from": "n1", "to": "n2", "after": [], "phase": "Done",
             "replacement": "d/a2", "message": None},
            {"pod": "d/b", "from": "n3", "to": "n1", "after": [0], "phase": "Failed",
             "replacement": None, "message": "Timeout"},
        ],
    }  # fmt: skip
    cluster_page.evaluate(_SHOWN, {"moves": [job], "plan": plan, "plans": [moves]})
    assert cluster_page.locator("#moving").is_visible()
    looking.expect_text(cluster_page, "#plan-notes", "1 pod to move. 1 other pod may not move. X:")
    looking.expect_text(cluster_page, "#plan", "d/a n1 → n2 LowNodeLoad: hot")
    looking.expect_text(cluster_page, "#plan", "d/b n1 → n2 LowNodeLoad: hot stays: PDB")
    looking.expect_text(
        cluster_page, "#move-plans", "<b>room</b> makes room for d/big Moving. move"
    )
    looking.expect_text(cluster_page, "#move-plans", "frees 0.50 of n1, at a cost of 2.250.")
    looking.expect_text(cluster_page, "#move-plans", "d/a n1 → n2 Done, now d/a2")
    looking.expect_text(cluster_page, "#move-plans", "d/b n3 → n1 after 1, Failed, Timeout")
    looking.expect_text(cluster_page, "#moves", "d/<i>web</i> n1 → n2 Running, by migrate")
    looking.expect_text(cluster_page, "#moves", "03:04:05 Eviction: Evicting <b>budget</b>")


def test_a_plan_for_a_gang_lists_who_gets_which_place(cluster_page: Page) -> None:
    """The pod that it is for and each other member, with their nodes; gangs that move are named."""
    move: dict[str, Any] = {
        "pod": "d/w-0", "from": "n1", "to": "n3", "after": [], "gang": "d/work", "phase": "Waiting",
        "replacement": None, "message": None,
    }  # fmt: skip
    member = {"pod": "d/<b>train-1</b>", "node": "n2"}
    plan = {
        "name": "g", "for": "d/train-0", "node": "n1", "mode": "Shadow", "phase": "Checking",
        "reason": None, "message": None, "cost": None, "members": [member], "moves": [move],
    }  # fmt: skip
    cluster_page.evaluate(_SHOWN, {"moves": [], "plans": [plan, {**plan, "members": []}]})
    shown = cluster_page.locator("#move-plans > li")
    looking.expect_text(cluster_page, "#move-plans", "d/train-0 and 1 more of its gang, moves")
    places = shown.nth(0).locator("ul li").all_inner_texts()
    assert places == ["d/train-0 on n1", "d/<b>train-1</b> on n2"]
    assert shown.nth(1).locator("ul").count() == 0
    moves = shown.nth(0).locator("ol li").all_inner_texts()
    assert moves == ["d/w-0 n1 → n3 with gang d/work, Waiting"]


def test_what_changes_is_seen(cluster_page: Page, cluster: Cluster) -> None:
    """A node that comes lets a waiting pod go there, without loading."""
    cluster.node("large", cpu="96")

    looking.expect_text(cluster_page, "#rows", "large")
    looking.expect_text(cluster_page, "#decisions", "d/big → large")
    looking.expect_text(cluster_page, "#queues", "The queues are empty.")


def test_by_keys_alone(cluster_page: Page) -> None:
    """Arrow keys go from node to node on the heat map; Enter opens one, Escape closes it."""
    keyboard = cluster_page.keyboard
    keyboard.press("Tab")
    assert "Skip" in cluster_page.evaluate("document.activeElement.textContent")
    skipped = "(document.activeElement.click(), document.activeElement.id)"
    assert cluster_page.evaluate(skipped) == "heat"
    cluster_page.locator("#heat-map").focus()
    keyboard.press("ArrowRight")
    looking.expect_text(cluster_page, "#pointed", "n1; CPU")
    keyboard.press("End")
    looking.expect_text(cluster_page, "#pointed", "n2; CPU")
    keyboard.press("Enter")
    looking.expect_text(cluster_page, "#node-name", "n2")
    assert cluster_page.evaluate("location.hash") == "#node=n2"
    keyboard.press("Escape")
    assert not cluster_page.locator("#node").is_visible()
    cluster_page.locator("#filter").focus()
    keyboard.type("n2")
    assert cluster_page.locator("#rows tr").count() == 1
    keyboard.press("Tab")
    assert "scroll" in cluster_page.evaluate("document.activeElement.className")


#: Of every cell, the node that a pointer in its middle finds.
_FOUND = """() => {
  const canvas = at("heat-map").getBoundingClientRect(), { width, height } = heat;
  return heat.order.map((_, n) => {
    const [x, y] = boxOf(n);
    return cellAt({ clientX: canvas.left + x + width / 2, clientY: canvas.top + y + height / 2 });
  });
}"""


def test_the_heat_map_is_grouped_by_zone(cluster_page: Page, cluster: Cluster) -> None:
    """A group begins below its name; keys and pointer find the cells; the address remembers it."""
    for n in range(5):
        cluster.node(f"a{n}", zone="east-10")
    for n in range(3):
        cluster.node(f"b{n}", zone="east-9")
    looking.expect_text(cluster_page, "#listed", "10 of 10 nodes")
    cluster_page.locator("#group").select_option("zone")
    groups = cluster_page.evaluate("heat.groups.map(({ name, count }) => [name, count])")
    assert groups == [["east-9", 3], ["east-10", 5], ["", 2]]
    assert cluster_page.evaluate("location.hash") == "#group=zone"
    assert cluster_page.evaluate(_FOUND) == list(range(10))
    tops = cluster_page.evaluate("heat.groups.map(({ top }) => top)")
    assert tops == sorted(tops)

    cluster_page.locator("#heat-map").focus()
    keyboard = cluster_page.keyboard
    keyboard.press("Home")
    looking.expect_text(cluster_page, "#pointed", "b0; zone east-9; CPU")
    # Two columns: two rows and one; three rows, the last of one.
    walks = "[[0, 1], [1, 1], [2, 1], [3, -1], [4, -1], [6, 1], [7, 1], [9, -1], [9, 1], [1, -1]]"
    went = cluster_page.evaluate(
        f"() => {{ heat.columns = 2; return {walks}.map(([n, way]) => beside(n, way)); }}"
    )
    assert went == [2, 2, 3, 2, 2, 7, 8, 7, 9, 0]
    cluster_page.reload()
    cluster_page.wait_for_selector("body[data-ready=yes]")
    assert cluster_page.locator("#group").input_value() == "zone"


def test_pending_pods_are_grouped_by_reason(cluster_page: Page, cluster: Cluster) -> None:
    """Of many alike there is one line, with their number and what they request together."""
    for n in range(3):
        cluster.pod(f"big-{n}", "64")
    looking.expect_text(cluster_page, "#pending", "4 0/2 nodes are available")
    looking.expect_text(cluster_page, "#pending", "requests 256 CPUs")
    assert cluster_page.locator("#pending > li").count() == 1


def test_the_address_and_the_search_lead_to_a_node(cluster_page: Page, cluster: Cluster) -> None:
    """A link opens the node it names, in the measure it names; the search finds nodes and pods."""
    url = f"http://{cluster.address}/#node=n1&measure=fragmentation&panel=held"
    cluster_page.goto("about:blank")
    cluster_page.goto(url)
    looking.expect_text(cluster_page, "#node-facts", "reservations: room")
    assert cluster_page.locator("#measure").input_value() == "fragmentation"
    cluster_page.keyboard.press("/")
    cluster_page.keyboard.type("big")
    looking.expect_text(cluster_page, "#results", "d/big pending pod")
    cluster_page.locator("#search").fill("n2")
    cluster_page.keyboard.press("Enter")
    looking.expect_text(cluster_page, "#node-name", "n2")
    cluster_page.goto(f"http://{cluster.address}/#node=absent")
    looking.expect_text(cluster_page, "#node-facts", "There is no node of this name.")


def test_the_choices_of_a_reader_are_remembered(cluster_page: Page) -> None:
    """Theme, measure and the order of the table are as they were after the page is loaded anew."""
    cluster_page.locator("#theme").click()
    theme = cluster_page.evaluate("document.documentElement.dataset.theme")
    cluster_page.locator("#measure").select_option("pressure")
    cluster_page.locator("#columns button").nth(1).click()
    cluster_page.goto(cluster_page.url.partition("#")[0])
    cluster_page.reload()
    cluster_page.wait_for_selector("body[data-ready=yes]")
    assert cluster_page.evaluate("document.documentElement.dataset.theme") == theme
    assert cluster_page.locator("#measure").input_value() == "pressure"
    assert cluster_page.locator("#columns th").nth(1).get_attribute("aria-sort") == "descending"


#: Elements that the table of nodes may have, however many nodes there are.
MOST_ROWS = 60
#: Time to draw 5 000 nodes, and of a second in which they changed (sorted, drawn, the table anew),
#: of the time to draw the same pixels for as many plain rectangles.
MOST_TIMES_RECTANGLES = {"drawHeat": 40, "second": 100}
_MANY = """(count) => {
  const many = Array.from({ length: count }, (_, n) => [`ip-10-${n}.eu-central-1.internal`, 32000,
    (n * 7919) % 33000, 0, n % 5 ? (n * 104729) % 32000 : null, 2 ** 37, (n * 31) % 100 * 2 ** 30,
    0, null, 110, n % 30, n % 53 ? "" : "M", n % 97 ? "" : "cordoned", {}, `zone-${n % 7}`]);
  const fields = ["name", "cpu", "cpuUsed", "cpuReserved", "cpuUse", "memory", "memoryUsed",
    "memoryReserved", "memoryUse", "podSlots", "pods", "pressure", "state", "others", "zone"];
  for (const row of many)
    nodes.byName.set(row[0], Object.fromEntries(fields.map((name, n) => [name, row[n]])));
  filterNodes(); rearrange(); sortRows();
}"""
_PACE = """() => {
  const middle = (f) => {
    const times = Array.from({ length: 15 }, () => {
      const start = performance.now();
      f();
      return performance.now() - start;
    });
    return times.sort((a, b) => a - b)[7];
  };
  const plain = document.createElement("canvas"), { width, height } = at("heat-map");
  [plain.width, plain.height] = [width, height];
  const context = plain.getContext("2d");
  const rectangles = () => {
    for (let n = 0; n < 5000; n += 1) {
      context.fillStyle = n % 2 ? "#123456" : "#654321";
      context.fillRect((n * 13) % width, (n * 7) % height, 9, 9);
    }
  };
  const second = () => {
    filterNodes(); arrange(); sortRows(); drawHeat();
    document.body.offsetHeight;
  };
  const plainly = middle(rectangles);
  return { drawHeat: middle(drawHeat) / plainly, second: middle(second) / plainly };
}"""


def test_five_thousand_nodes_stay_light(cluster_page: Page) -> None:
    """The table has elements for what is in sight; the map costs a multiple of its rectangles."""
    cluster_page.evaluate(_MANY, 5000)
    looking.expect_text(cluster_page, "#listed", "5002 of 5002 nodes")
    assert cluster_page.locator("#rows tr").count() < MOST_ROWS
    table = cluster_page.locator("#node-table")
    table.evaluate("(frame) => { frame.scrollTop = frame.scrollHeight; }")
    looking.expect_text(cluster_page, "#rows", "n2")
    assert cluster_page.locator("#rows tr").count() < MOST_ROWS
    cluster_page.locator("#columns button").nth(1).click()
    looking.expect_text(cluster_page, "#rows", "CPUs over")
    heights = cluster_page.locator("#rows tr:not(.spacer)").evaluate_all(
        "(rows) => [...new Set(rows.map((row) => Math.round(row.getBoundingClientRect().height)))]"
    )
    assert len(heights) == 1
    cut = "(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    assert cluster_page.locator("#rows td:nth-child(2), #columns th").evaluate_all(cut) == 0
    zoomed = """() => { heat.cursor = 2828; zoomHeat(8); const frame = at("map-frame");
      const top = (element) => element.getBoundingClientRect().top;
      return [frame.scrollTop > frame.clientHeight, top(at("heat-map")) - top(frame)]; }"""
    assert cluster_page.evaluate(zoomed) == [True, 0]
    cluster_page.evaluate("zoomHeat(1 / 8)")
    for group in ("none", "zone"):
        cluster_page.locator("#group").select_option(group)
        for what, ratio in cluster_page.evaluate(_PACE).items():
            assert ratio < MOST_TIMES_RECTANGLES[what], (group, what)


@pytest.mark.parametrize("width", [320, 768, 1280, 3840])
def test_sizes(cluster_page: Page, cluster: Cluster, width: int) -> None:
    """From a telephone to a wall, with many nodes."""
    for number in range(30):
        cluster.node(f"worker-{number:03}.rack-7.example-of-a-long-domain")
    looking.expect_text(cluster_page, "#totals", "32 nodes")
    cluster.gang("gang-of-a-very-long-name.example-of-a-long-domain", 64)
    looking.expect_text(cluster_page, "#gang-count", "1 waiting")
    for place in range(4):
        name = f"team-{place}-of-a-very-long-name.example-of-a-long-domain"
        cluster.quota(name, "1000", "2000")
    looking.expect_text(cluster_page, "#share-count", "6 quotas")
    cluster_page.set_viewport_size({"width": width, "height": 900})
    looking.panels_apart(cluster_page, panels=10)


def test_hostile_names(cluster_page: Page, cluster: Cluster) -> None:
    """They are text wherever they are shown, should a store ever let such names through."""
    cluster.hostile()

    for name in looking.HOSTILE:
        looking.expect_text(cluster_page, "#pending", name)
        looking.expect_text(cluster_page, "#decisions", name)
        looking.expect_text(cluster_page, "#rows", name)
    assert cluster_page.locator("main img, main script, main svg[onload]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_can_be_read(cluster_page: Page, cluster: Cluster, theme: looking.Theme) -> None:
    """In both themes: large enough and apart from what is behind it, on a telephone and a wall."""
    cluster_page.emulate_media(color_scheme=theme)
    looking.expect_text(cluster_page, "#decisions", "d/web")
    cluster.gang("late", 3)
    cluster.quota("team", "1", "2")
    looking.expect_text(cluster_page, "#quotas", "team")
    looking.expect_text(cluster_page, "#gangs", "late")
    cluster_page.evaluate("chooseNode('n1', 'search')")
    looking.expect_text(cluster_page, "#node-facts", "room")
    for width, pixels in ((390, 11), (1440, 11), (3840, 14)):
        cluster_page.set_viewport_size({"width": width, "height": 900})
        assert looking.unreadable(cluster_page, pixels=pixels) == []
