// Makes the page follow the cluster; everything on it works without.
"use strict";
(() => {
  const status = document.getElementById("status");
  if (!status) {  // before the first collection
    setTimeout(() => location.reload(), 2000);
    return;
  }
  const form = document.getElementById("selection");
  let address = location.href;
  let asked = 0;

  // Puts the parts of another page in the place of ours; what is in focus stays so.
  async function show(url) {
    const number = ++asked;
    try {
      const answer = await fetch(url, {cache: "no-store"});
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (number !== asked) return;
      if (!answer.ok && answer.status !== 400) throw new Error(answer.status);  // 400 is a page that names the mistake
      const focused = document.activeElement ? document.activeElement.id : "";
      for (const old of document.querySelectorAll(".live")) {
        const scrolled = old.querySelector(".wide")?.scrollLeft ?? 0;
        const fresh = page.getElementById(old.id);
        if (!fresh) continue;
        old.replaceWith(document.adoptNode(fresh));
        const wide = fresh.querySelector(".wide");
        if (wide) wide.scrollLeft = scrolled;
      }
      if (focused) document.getElementById(focused)?.focus({preventScroll: true});
      if (url !== address) history.replaceState(null, "", url);
      address = url;
      status.textContent = "";
    } catch {
      if (number === asked) status.textContent = "What is shown is old: the exporter does not answer.";
    }
  }

  function chosen() {
    const said = [...new FormData(form)].filter(([, value]) => value !== "");
    return new URL("?" + new URLSearchParams(said), document.baseURI).href;
  }

  let pause = 0;
  form?.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => show(chosen()), 250);
  });
  form?.addEventListener("submit", event => {
    event.preventDefault();
    clearTimeout(pause);
    show(chosen());
  });
  document.addEventListener("click", event => {
    const link = event.target.closest("thead a, .order a, .parts a[rel=prev], .parts a[rel=next]");
    if (!form || !link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const said = new URL(link.href).searchParams;
    for (const field of form.querySelectorAll("input[type=hidden]")) field.value = said.get(field.name) ?? "";
    show(link.href);
  });

  const follow = document.createElement("input");
  follow.type = "checkbox";
  follow.id = "follow";
  follow.checked = true;
  const label = document.createElement("label");
  label.append(follow, " Follow");
  if (form) form.append(label);
  else status.before(label);
  setInterval(() => {
    if (follow.checked && document.visibilityState === "visible") show(address);
  }, 10000);
})();
