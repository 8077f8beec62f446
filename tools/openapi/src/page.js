"use strict";
(() => {
  const field = document.querySelector("nav input");
  const found = document.getElementById("found");
  const sections = [...document.querySelectorAll("main > section:not(#schemas), .schema")].map((section) => ({
    section,
    text: section.textContent.toLowerCase(),
    link: document.querySelector(`nav a[href="#${section.id}"]`)?.parentElement,
  }));
  field.parentElement.hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { section, text, link } of sections) {
      const fits = words.every((word) => text.includes(word));
      section.hidden = !fits;
      if (link) link.hidden = !fits;
      shown += Number(fits);
    }
    found.textContent = words.length > 0 ? `${shown} of ${sections.length} sections` : "";
  });
  // A link leads to its section, whatever is searched for.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) { target.hidden = false; target.scrollIntoView(); }
  });

  // Copying needs the clipboard; without it the button stays hidden and the text can be selected.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
})();
