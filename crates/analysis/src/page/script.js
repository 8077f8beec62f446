"use strict";
(() => {
  const list = document.querySelector(".cards");
  const controls = document.querySelector(".controls");
  if (!list || !controls || list.children.length < 2) return;
  controls.hidden = false;
  const cards = [...list.children];
  const none = document.querySelector(".none");
  const search = controls.querySelector("input");
  const sort = controls.querySelector("select");
  const buttons = [...controls.querySelectorAll("button")];
  let show = "all";
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const fits = (show === "all" || card.dataset.status === show)
        && words.every((word) => card.dataset.name.includes(word));
      card.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    none.hidden = shown > 0;
  };
  const order = () => {
    const by = sort.value;
    const place = new Map(cards.map((card, index) => [card, index]));
    const sorted = [...cards].sort((a, b) => (by === "name"
      ? a.dataset.name.localeCompare(b.dataset.name)
      : Number(b.dataset[by]) - Number(a.dataset[by])) || place.get(a) - place.get(b));
    list.append(...sorted);
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      show = button.dataset.show;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      apply();
    });
  }
  search.addEventListener("input", apply);
  sort.addEventListener("change", order);
})();
