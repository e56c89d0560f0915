"use strict";
/* What the pages do beyond links and forms. Everything works without it, and it never handles arguments. */
(() => {
  const $ = (selector, inside = document) => inside.querySelector(selector);
  const $$ = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  /* --- live: what happens on the server makes the page fetch its parts anew --- */
  let renewing = null;
  const renew = () => {
    clearTimeout(renewing);
    renewing = setTimeout(() => document.body.dispatchEvent(new CustomEvent("changed")), 60);
  };
  let greeted = false;
  document.addEventListener("htmx:sse:after:message", ({ detail }) => {
    offline(false);
    if (!detail.message.event) return; // text that has come to its place already
    if (detail.message.event !== "hello") return renew();
    if (greeted) renew(); // the stream was away, and something may have happened meanwhile
    greeted = true;
  });
  document.addEventListener("htmx:sse:error", ({ detail }) => {
    if (detail.status === 401) location.reload(); // signed out: the server shows where to sign in
    else offline(true);
  });
  document.addEventListener("htmx:after:swap", () => { tick(); select(); });

  /* --- offline --- */
  const offline = (is) => { const banner = $("#offline"); if (banner) banner.hidden = !is; };
  addEventListener("offline", () => offline(true));
  addEventListener("online", () => { offline(false); renew(); });

  /* --- times that go on --- */
  const told = new WeakMap(); // what the server said was left, and when: no clock but this page's is asked
  const left = (element) => {
    let said = told.get(element);
    if (said?.text !== element.dataset.left) {
      said = { text: element.dataset.left, at: performance.now() };
      told.set(element, said);
    }
    return Math.round(Number(said.text) - (performance.now() - said.at) / 1000);
  };
  const span = (seconds) => {
    const [d, h, m, s] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60].map(Math.floor);
    if (d) return `${d}d ${h}h`;
    if (h) return `${h}h ${String(m).padStart(2, "0")}m`;
    return m ? `${m}m ${String(s).padStart(2, "0")}s` : `${s}s`;
  };
  const tick = () => {
    if (document.hidden) return;
    for (const each of $$("time[data-tick]")) {
      const seconds = left(each);
      const past = each.dataset.tick === "age";
      const text = past ? (seconds > -1 ? "now" : `${span(-seconds)} ago`) : seconds > 0 ? span(seconds) : "overdue";
      if (each.textContent !== text) each.textContent = text;
      if (!past) each.classList.toggle("overdue", seconds <= 0);
    }
  };
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);

  /* --- forms: once each, and by Ctrl+Enter from a field --- */
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    form.dataset.sent = "yes";
    event.submitter?.setAttribute("aria-busy", "true");
  }, { capture: true });
  const again = () => {
    for (const form of $$("form[data-sent]")) delete form.dataset.sent;
    for (const button of $$("button[aria-busy]")) button.removeAttribute("aria-busy");
  };
  addEventListener("pageshow", again);
  document.addEventListener("htmx:finally:request", ({ target }) => { if (target.matches?.("form, form *")) again(); });
  for (const field of $$("form[data-filters] select")) field.addEventListener("change", () => field.form.requestSubmit());

  /* --- the selection --- */
  const boxes = () => $$("#bulk input[name=item]");
  const select = () => {
    const bar = $(".bulk");
    if (!bar) return;
    const chosen = boxes().filter((box) => box.checked);
    const kinds = new Set(chosen.map((box) => box.dataset.kind));
    const alone = chosen.find((box) => box.dataset.alone);
    const why = !chosen.length ? "Select reviews to decide them together."
      : alone ? alone.dataset.alone : kinds.size > 1 ? "One kind at a time: these are about different tools."
      : "Each is still its own decision.";
    const count = new Set(chosen.flatMap((box) => JSON.parse(box.value).map(([id]) => id))).size;
    $("#selected").hidden = !count;
    $("#selected").textContent = `${count} selected`;
    $("#why-not").textContent = why;
    for (const button of $$("button", bar)) {
      button.disabled = !chosen.length || (button.value !== "claim" && Boolean(alone || kinds.size > 1));
    }
  };
  document.addEventListener("change", ({ target }) => {
    if (target.name !== "item") return;
    const members = $$("input[name=item]", target.closest(".group")?.querySelector(".members") || new DocumentFragment());
    if (target.dataset.group !== undefined) for (const box of members) box.checked = target.checked;
    else if (members.length) $("[data-group]", target.closest(".group")).checked = members.every((box) => box.checked);
    select();
  });

  /* --- single keys --- */
  const rows = () => $$(".rows .row").filter((row) => row.checkVisibility());
  const here = () => document.activeElement?.closest?.(".row");
  const go = (by) => {
    const all = rows();
    if (!all.length) return $(`[data-key=${by > 0 ? "j" : "k"}]`)?.click();
    const at = all.indexOf(here());
    const row = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    (row && $("a.what, summary", row))?.focus();
  };
  const focusOn = (selector) => { const found = $(selector); found?.focus(); found?.scrollIntoView({ block: "nearest" }); return found; };
  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    x: () => here() && $("input[name=item]", here())?.click(),
    c: () => here() && $("[data-claim]", here())?.click(),
    "/": () => focusOn("[data-search]"),
    "?": () => $("#keys")?.showModal(),
    a: () => focusOn("[data-key=a]"),
    e: () => focusOn("[data-key=e]"),
    r: () => focusOn("[data-key=r]"),
  };
  const typing = (element) => element.isContentEditable || element.matches("textarea, select, input:not([type=checkbox], [type=radio])");
  const on = () => { try { return localStorage.getItem("single-keys") !== "off"; } catch { return true; } };
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && typing(target) && target.form) {
      event.preventDefault();
      const button = target.form.id !== "bulk" && $("button.main:not([disabled])", target.form);
      if (button) target.form.requestSubmit(button);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(target) || $("dialog[open]")) return;
    if (event.key === "Enter" && target.matches("input[name=item]")) {
      event.preventDefault();
      $("a.what, summary", here())?.click();
    } else if (on() && KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });

  /* --- the list of keys --- */
  for (const button of $$("[data-opens]")) {
    button.hidden = false;
    button.addEventListener("click", () => $(`#${button.dataset.opens}`).showModal());
  }
  const box = $("#keys-on");
  if (box) {
    box.checked = on();
    box.addEventListener("change", () => { try { localStorage.setItem("single-keys", box.checked ? "on" : "off"); } catch { /* kept nowhere */ } });
  }
  select();
  tick();
})();
