// Pending pods by reason: how many, for how long, what they request together, and the first of each group.
"use strict";

const unfolded = new Map();

function drawQueue(state) {
  at("queues").textContent = Object.entries(state.queues).filter(([, n]) => n).map(([name, n]) => `${n} ${name}`).join(", ") || "The queues are empty.";
  const groups = state.groups.map((group) => {
    const key = `${group.queue} ${group.why}`, open = unfolded.has(key) ? unfolded.get(key) : state.groups.length < 4 && group.count < 6;
    const more = group.count - group.pods.length;
    const details = make("details", { open }, make("summary", { "data-key": key }, make("b", { class: "count" }, String(group.count)),
      ` ${group.why || "waiting for its turn"} `, make("span", { class: "soft" }, `${group.queue}, longest ${span(group.longestSeconds)}; requests ${amounts(group.requests) || "nothing"}`)),
    make("ul", {}, ...group.pods.map((pod) => make("li", {}, make("b", {}, pod.pod), make("span", { class: "soft" },
      ` ${pod.reservation ? "a reservation, " : ""}priority ${pod.priority}, ${counted(pod.attempts, "attempt")} in ${span(pod.waitingSeconds)}${
        pod.nominated ? `, nominated to ${pod.nominated}` : ""}; requests ${amounts(pod.requests) || "nothing"}`))),
    more > 0 ? make("li", { class: "soft" }, `and ${more} more`) : null));
    details.addEventListener("toggle", () => unfolded.set(key, details.open));
    return make("li", {}, details);
  });
  const more = state.groupCount - groups.length;
  if (more > 0) groups.push(make("li", { class: "soft" }, `and ${counted(more, "smaller group")}`));
  keepFocus(at("pending"), "key", () => at("pending").replaceChildren(...groups));
  foldEmpty("waiting", !state.groupCount);
}
