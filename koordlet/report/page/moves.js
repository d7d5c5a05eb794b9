// Moves of the scheduler's page: what the last round wants, plans of moves, migration jobs as a timeline.
// Everything from outside becomes text, never markup; page.js draws, cluster.js calls.
"use strict";

function drawMoves(state) {
  const jobs = state.moves || [], plan = state.plan || { moves: [], refused: [], notes: [] };
  at("moving").hidden = state.moves === undefined;
  const refused = plan.refused.length ? ` ${counted(plan.refused.length, "other pod")} may not move.` : "";
  at("plan-notes").textContent = `${counted(plan.moves.length, "pod")} to move.${refused} ${
    plan.notes.map((note) => [note.strategy, note.message].filter(Boolean).join(": ")).join("; ")}`.trim();
  at("plan").replaceChildren(...[...plan.moves, ...plan.refused].slice(0, 50).map((move) => make("li", {},
    make("b", {}, move.pod), ` ${move.node} → ${move.target || "wherever there is room"} `,
    make("span", { class: "soft" }, `${move.strategy}: ${move.reason}`),
    move.why ? make("span", { class: "bad" }, ` stays: ${move.why}`) : "")));
  at("move-plans").replaceChildren(...(state.plans || []).map((plan) => {
    const phase = [plan.phase, plan.reason].filter(Boolean).join(": "), failed = plan.phase === "Failed" || plan.phase === "Aborted";
    const worth = plan.cost ? ` frees ${plan.improvement} of ${plan.node}, at a cost of ${plan.cost.disruption}.` : "";
    const members = plan.members || [], more = members.length ? ` and ${members.length} more of its gang` : "";
    const places = more ? [{ pod: plan.for, node: plan.node }, ...members] : [];
    return make("li", {}, make("b", {}, plan.name), ` ${plan.for ? `makes room for ${plan.for}${more}` : "empties a node"}`,
      plan.mode === "Act" ? " " : ", moves nobody: ", make("span", { class: failed ? "bad" : "soft" }, `${phase}. ${plan.message || ""}${worth}`),
      more ? make("ul", {}, ...places.map((place) => make("li", {}, make("b", {}, place.pod), ` on ${place.node}`))) : "",
      make("ol", {}, ...plan.moves.map((move) => make("li", {}, make("b", {}, move.pod), ` ${move.from} → ${move.to} `,
        make("span", { class: move.phase === "Failed" ? "bad" : "soft" },
          [move.after.length ? `after ${move.after.map((place) => place + 1).join(", ")}` : "", move.gang ? `with gang ${move.gang}` : "", move.phase, move.message,
            move.replacement ? `now ${move.replacement}` : ""].filter(Boolean).join(", "))))));
  }));
  at("moves").replaceChildren(...jobs.map((job) => {
    const steps = job.timeline.map((step) => make("li", {}, moment(seconds(step.at)), step.what, step.message ? make("span", { class: "soft" }, ` ${step.message}`) : ""));
    const place = `${job.from || "?"} → ${job.to || "?"}`;
    return make("li", {}, make("b", {}, job.pod), ` ${place} `, make("span",
      { class: job.phase === "Failed" || job.phase === "Aborted" ? "bad" : "soft" }, `${job.phase}, by ${job.by}`),
    make("ol", {}, ...steps));
  }));
}
