"use strict";
(() => {
  const controls = document.querySelector(".controls");
  const data = (id) => JSON.parse(document.getElementById(id).textContent);
  const runs = data("runs");
  const files = data("files");
  const MOST = 100;
  // How many rows of a group are drawn at once; the others follow a moment later, as drawing takes longer than searching.
  const AT_ONCE = 20;
  const fields = [...controls.querySelectorAll("select, input")];
  const chips = [...controls.querySelectorAll("[data-show]")];
  const named = (name) => fields.find((field) => field.name === name);
  const numbers = (text) => (text ? text.split(" ").map(Number) : []);
  const groups = [...document.querySelectorAll(".group")].map((section) => {
    const list = section.querySelector(".rows");
    const more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    const group = { section, list, more, fold: section.querySelector(".fold"), limit: MOST, rows: [] };
    if (list) {
      list.after(more);
      more.addEventListener("click", () => { group.limit += MOST; apply(); });
      group.rows = [...list.children].map((row, place) => {
        const d = row.dataset;
        const name = row.querySelector(".name").title;
        const file = d.f === undefined ? "" : files[d.f];
        return {
          row, place, name, status: d.s, isNew: d.new === "1",
          text: (name + "\n" + file).toLowerCase(),
          lost: Number(d.lost ?? -1), score: Number(d.score), rate: Number(d.rate ?? -1), impact: Number(d.impact ?? 0),
          file: d.f === undefined ? [] : [Number(d.f)], branch: numbers(d.b), variant: numbers(d.v), error: numbers(d.e),
        };
      });
    }
    return group;
  });
  const all = groups.reduce((sum, group) => sum + group.rows.length, 0);
  let show = "";

  const draw = (group, rows) => {
    const { list } = group;
    clearTimeout(group.rest);
    // A further letter often changes nothing.
    if (rows.length === list.children.length && rows.every((row, place) => row === list.children[place])) return;
    list.replaceChildren(...rows.slice(0, AT_ONCE));
    if (rows.length > AT_ONCE) group.rest = setTimeout(() => list.append(...rows.slice(AT_ONCE)), 30);
  };

  const apply = () => {
    const words = named("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const choices = fields.filter((field) => field.tagName === "SELECT" && field.name !== "sort" && field.value)
      .map((field) => [field.name, Number(field.selectedOptions[0].dataset.n)]);
    const onlyNew = named("new").checked;
    const by = named("sort").value;
    const isFiltered = show !== "" || words.length > 0 || choices.length > 0 || onlyNew;
    const fits = (entry) => (show === "" || entry.status === show) && (!onlyNew || entry.isNew)
      && choices.every(([name, number]) => entry[name].includes(number))
      && words.every((word) => entry.text.includes(word));
    let found = 0;
    for (const group of groups) {
      if (!group.list) continue;
      const matching = isFiltered ? group.rows.filter(fits) : [...group.rows];
      if (by === "name") matching.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.place - b.place));
      else if (by) matching.sort((a, b) => b[by] - a[by] || a.place - b.place);
      found += matching.length;
      draw(group, matching.slice(0, group.limit).map((entry) => entry.row));
      const rest = matching.length - group.limit;
      group.more.hidden = rest <= 0;
      group.more.textContent = `Show ${Math.min(rest, MOST)} of ${rest} more`;
      group.section.hidden = isFiltered && matching.length === 0;
      if (group.fold && isFiltered) group.fold.open = matching.length > 0;
    }
    controls.querySelector(".count").textContent = isFiltered
      ? (found === 0 ? "No test matches." : `${found.toLocaleString("en")} of ${all.toLocaleString("en")} tests`) : "";
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chip.dataset.show === show));
  };

  // The state is part of the address: #status=flaky&search=pay. An address such as #t-0a1b2c names a test.
  const remember = () => {
    const state = new URLSearchParams();
    if (show) state.set("status", show);
    for (const field of fields) {
      if (field.type === "checkbox" ? field.checked : field.value) state.set(field.name, field.value);
    }
    history.replaceState(null, "", "#" + state);
  };
  const changed = () => {
    for (const group of groups) group.limit = MOST;
    apply();
    remember();
  };
  const openTest = (id) => {
    for (const group of groups) {
      const entry = group.rows.find(({ row }) => row.firstElementChild.id === id);
      if (!entry) continue;
      if (!entry.row.isConnected) group.list.prepend(entry.row);
      group.section.hidden = false;
      if (group.fold) group.fold.open = true;
      entry.row.firstElementChild.open = true;
      entry.row.scrollIntoView();
    }
  };
  const restore = () => {
    const hash = location.hash.slice(1);
    if (hash.startsWith("t-")) return openTest(hash);
    const state = new URLSearchParams(hash);
    show = chips.some((chip) => chip.dataset.show === state.get("status")) ? state.get("status") : "";
    for (const field of fields) {
      if (field.type === "checkbox") field.checked = state.has(field.name);
      else field.value = state.get(field.name) ?? "";
      if (field.tagName === "SELECT" && field.selectedIndex < 0) field.selectedIndex = 0;
    }
    apply();
  };
  for (const chip of chips) chip.addEventListener("click", () => { show = chip.dataset.show; changed(); });
  controls.addEventListener("input", changed);
  controls.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);

  // A card is read when its row is opened.
  document.addEventListener("toggle", ({ target }) => {
    const later = target.open && target.querySelector(":scope > script.later");
    if (!later) return;
    const holder = document.createElement("div");
    holder.innerHTML = later.textContent;
    later.replaceWith(...holder.childNodes);
  }, true);

  // Which run a bar is.
  const outcomes = {
    p: "passed", r: "passed on retry", f: "failed", m: "failed with many others, not counted", s: "skipped",
  };
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", (event) => {
    const drawn = event.target.closest?.("svg[data-o]");
    const holder = drawn?.closest("[data-runs]");
    const letters = drawn?.dataset.o ?? "";
    const box = drawn?.getBoundingClientRect();
    const place = drawn ? Math.floor((event.clientX - box.left) / box.width * letters.length) : -1;
    const outcome = outcomes[letters[place]];
    tip.hidden = !holder || !outcome;
    if (tip.hidden) return;
    const places = holder.dataset.runs.split(",").flatMap((range) => {
      const [first, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, step) => first + step);
    });
    const [run, branch, at, revision] = runs[places[place]];
    tip.textContent = [outcome, run, branch && `on ${branch}`, at, revision && `revision ${revision}`].filter(Boolean).join("\n");
    // The style of an element that the script sets is its own, not part of the page's markup.
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  });

  if (all > 1) controls.hidden = false;
  restore();
})();
