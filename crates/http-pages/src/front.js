"use strict";
(() => {
  // A link may have a key after `#`, which is never sent to the server. The form sends the key: in the demonstration at once,
  // elsewhere after a click, because a link of a stranger could sign a visitor in with the stranger's key.
  const key = document.querySelector("input[name=key]");
  const signIn = () => {
    if (!key) return;
    if (!location.hash.startsWith("#svc_")) return key.focus();
    key.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
    if (key.form.dataset.byLink !== undefined) return key.form.requestSubmit();
    document.getElementById("from-link").hidden = false;
    key.form.querySelector("button").focus();
  };
  addEventListener("hashchange", signIn);
  signIn();

  // A browser omits the session's cookie after a link of another site. If this site's own request is answered, there is
  // a session.
  const next = document.getElementById("next");
  if (next && !location.hash) {
    fetch(next.href, { redirect: "manual" }).then(({ type, status }) => {
      if (type !== "opaqueredirect" && status !== 401) location.replace(next.href);
    }, () => { /* The form remains. */ });
  }

  // Search as you type: the same form, sent for its results alone.
  const form = document.querySelector("form[data-live]");
  if (form) {
    let latest = 0;
    let timer;
    const load = async () => {
      const turn = ++latest;
      const given = [...new FormData(form)].filter(([, value]) => value !== "");
      const address = `${form.getAttribute("action")}?${new URLSearchParams(given)}`;
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (turn !== latest) return;
      if (!answer.ok || answer.redirected) return location.assign(address);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("results");
      if (!fresh) return location.assign(address);
      document.getElementById("results").replaceWith(fresh);
      document.querySelector("footer").replaceWith(page.querySelector("footer"));
      history.replaceState(null, "", address);
    };
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => load().catch(() => form.requestSubmit()), 120);
    });
  }

  // Remembered choices: the tabs lead to the period and the order that were chosen last. A browser may have no storage.
  // A page with an error forgets the choices, because one of them may be its cause.
  const remember = (change) => { try { change(); } catch { /* Then nothing is remembered. */ } };
  if (!key && !document.querySelector(".top nav")) remember(() => localStorage.clear());
  for (const tab of document.querySelectorAll("a[data-remember]")) {
    const name = tab.dataset.remember;
    remember(() => {
      const chosen = localStorage.getItem(`${tab.pathname} ${name}`);
      if (chosen) tab.search = new URLSearchParams({ [name]: chosen });
    });
  }
  document.addEventListener("change", ({ target }) => {
    const { name, value, form } = target;
    if (["days", "sort"].includes(name)) remember(() => localStorage.setItem(`${form.getAttribute("action")} ${name}`, value));
  });

  // Copying needs the clipboard; without it the button stays hidden and the text can be selected.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const said = button.textContent;
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select and copy the text";
        const fold = document.getElementById(button.dataset.copy).closest("details");
        if (fold) fold.open = true;
      }
      setTimeout(() => { button.textContent = said; }, 2000);
    });
  }
})();
