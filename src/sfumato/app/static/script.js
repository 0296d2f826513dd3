// The one script of the page. Every page works without it; with it, forms are sent without a new page, runs are
// followed while they go on, and files can be dropped. It sends nothing to anybody but the server of the page.
"use strict";
(() => {
  const parser = new DOMParser();
  const sign = () => document.querySelector("meta[name=sfumato-sign]").content;
  const live = (text) => { const place = document.getElementById("live"); if (place) place.textContent = text; };
  const CONTROLS = "a[href], button, summary, input:not([type=hidden]), select, textarea";
  let stream = null;
  const without_fragment = (address) => new URL(address, location.href).href.replace(/#.*/, "");
  let shown = without_fragment(location.href);

  // sent: the address of the form that led to the page. What is being written in other forms stays.
  function show(html, address, { focus = null, push = true, sent = null } = {}) {
    if (waiting?.form.id) changed_since = { id: waiting.form.id, fields: new FormData(waiting.form) };
    forget();
    const next = parser.parseFromString(html, "text/html");
    const named = (each) => each.id || each.querySelector("summary")?.textContent;
    const folds = new Map([...document.querySelectorAll("details")].map((each) => [named(each), each.open]));
    const scrolled = window.scrollY;
    const same = new URL(address, location.href).pathname === new URL(shown).pathname;
    shown = without_fragment(address);
    const written = !same ? [] : [...document.querySelectorAll("input[id], textarea[id]")]
      .filter((each) => each.value !== each.defaultValue && each.type !== "range" && each.form?.action !== sent)
      .map((each) => [each.id, each.defaultValue, each.value]);
    document.title = next.title;
    document.documentElement.lang = next.documentElement.lang;
    document.documentElement.dataset.theme = next.documentElement.dataset.theme;
    document.body.className = next.body.className;
    document.body.replaceChildren(...document.adoptNode(next.body).childNodes);
    const meta = next.querySelector("meta[name=sfumato-sign]");
    if (meta) document.querySelector("meta[name=sfumato-sign]").content = meta.content;
    if (push && address !== location.href) history.pushState(null, "", address);
    for (const each of document.querySelectorAll("details")) {
      each.open = folds.get(named(each)) ?? each.open;
    }
    for (const [id, before, value] of written) {
      const field = document.getElementById(id);
      if (field?.defaultValue === before) field.value = value;
    }
    const alarm = document.getElementById("alarm");
    if (alarm) { alarm.focus(); }
    else if (same) { window.scrollTo(0, scrolled); focus?.(); }
    else { window.scrollTo(0, 0); document.querySelector("h1")?.focus(); }
    current_step();
    follow();
    if (changed_since) make_up();
    if (alarm) pressed = null; // what was pressed may have relied on what was refused
    if (pressed) press_again();
    at_once();
  }

  // On a narrow window the steps scroll sideways: show the one that we are at.
  function current_step() {
    const step = document.querySelector(".steps a[aria-current]");
    const list = step?.closest("ol");
    if (list) list.scrollLeft = step.offsetLeft - list.offsetLeft - (list.clientWidth - step.offsetWidth) / 2;
  }

  // What is to be checked as soon as it is seen.
  function at_once() {
    const form = document.querySelector("form[data-now]");
    if (form) send(form, null);
  }

  // Where the focus was, so that it is there again on the new page: on the same control, on one in the same place, or,
  // if neither is left, on the heading. It is never nowhere, from where keys would begin with the frame again.
  function remembered() {
    const at = document.activeElement;
    if (!at || at === document.body) return null;
    const form = at.closest("form[id]");
    const id = at.id, name = at.name, value = at.value;
    const places = [];
    for (let place = at.closest("[id]:not(main)"); place; place = place.parentElement.closest("[id]:not(main)")) {
      places.push(place.id);
    }
    return () => {
      const found = (id && document.getElementById(id)) ||
        (form && name && [...document.querySelectorAll(`#${CSS.escape(form.id)} [name="${CSS.escape(name)}"]`)]
          .find((each) => each.type !== "radio" || each.value === value)) ||
        places.map((place) => document.getElementById(place)?.querySelector(CONTROLS)).find((each) => each);
      (found ?? document.querySelector("h1"))?.focus({ preventScroll: !found });
    };
  }

  // One form is sent at a time. What is changed in a form meanwhile is put into the new page and sent from there, since
  // the answer shows the state without it. So is a button that is pressed meanwhile. One that is pressed twice counts
  // once.
  let sending = null, changed_since = null, pressed = null;
  // What tells a form from others on a page that is drawn anew: where it goes, and what it holds of its own.
  const name_of = (form) => JSON.stringify([form.action, ...[...form.querySelectorAll("input[type=hidden]")]
    .filter((each) => each.name !== "sign" && each.name !== "version").map((each) => [each.name, each.value])]);
  function press_again() {
    const { form: name, button } = pressed;
    pressed = null;
    const form = [...document.forms].find((each) => name_of(each) === name);
    const same = (each) => each.type === "submit" && each.name === button.name && each.value === button.value;
    const found = form && [...form.elements].find(same);
    if (found) form.requestSubmit(found);
  }
  function make_up() {
    const { id, fields } = changed_since;
    changed_since = null;
    const form = document.getElementById(id);
    if (!form) return;
    for (const each of form.elements) {
      if (each.type === "checkbox" || each.type === "radio") each.checked = fields.getAll(each.name).includes(each.value);
      else if (each.name && each.type !== "hidden" && fields.has(each.name)) each.value = fields.get(each.name);
    }
    send(form, null);
  }

  // A page that is exchanged while a key or a button is down would lose what it does when it comes up.
  let down = false;
  for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, () => { down = true; });
  for (const kind of ["keyup", "pointerup", "pointercancel"]) document.addEventListener(kind, () => { down = false; });
  const released = () => new Promise((go_on) => {
    if (!down) { go_on(); return; }
    for (const kind of ["keyup", "pointerup"]) document.addEventListener(kind, () => setTimeout(go_on), { once: true });
    setTimeout(go_on, 1000); // a key may come up in another window
  });

  async function send(form, submitter) {
    const fields = new FormData(form, submitter);
    if (sending) {
      if (!submitter && form.id) changed_since = { id: form.id, fields };
      if (submitter && name_of(form) !== sending) pressed = { form: name_of(form), button: submitter };
      return;
    }
    sending = name_of(form);
    const body = new URLSearchParams(fields);
    const main = document.getElementById("main");
    main?.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin" });
      const html = await answer.text();
      await released();
      sending = null;
      show(html, answer.redirected ? answer.url : location.href, { focus: remembered(), sent: form.action });
    } catch {
      sending = pressed = null;
      main?.removeAttribute("aria-busy");
      gone();
    }
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      const html = await answer.text();
      await released();
      show(html, location.href, { focus: remembered(), push: false });
    } catch { gone(); }
  }

  function gone() {
    const main = document.getElementById("main");
    if (!main || main.querySelector("#gone")) return;
    const place = document.createElement("p");
    place.id = "gone"; place.className = "alarm"; place.setAttribute("role", "alert");
    place.textContent = document.getElementById("live").dataset.gone;
    main.prepend(place);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !("swap" in form.dataset)) return;
    event.preventDefault();
    send(form, event.submitter);
  });

  document.addEventListener("change", (event) => {
    const at = event.target;
    if (at.dataset && "upload" in at.dataset) { if (at.files.length) upload(at.files[0], at); return; }
    if (!at.dataset || !("auto" in at.dataset) || !at.form) return;
    // Arrows pass by the choices between the old and the new one, and only the one that they stay at is meant.
    clearTimeout(waiting?.clock);
    waiting = { form: at.form, clock: by_arrows ? setTimeout(decided, STAY) : 0 };
    if (!by_arrows) decided();
  });
  const STAY = 500; // milliseconds
  let waiting = null, by_arrows = false;
  function forget() {
    clearTimeout(waiting?.clock);
    waiting = null;
  }
  function decided() {
    const form = waiting?.form;
    forget();
    if (form?.isConnected) form.requestSubmit();
  }
  document.addEventListener("keydown", (event) => { by_arrows = event.key.startsWith("Arrow"); });
  document.addEventListener("pointerdown", () => { by_arrows = false; });
  document.addEventListener("focusout", (event) => {
    if (waiting && !waiting.form.contains(event.relatedTarget)) decided();
  });

  document.addEventListener("click", async (event) => {
    const at = event.target.closest("[data-copy]");
    if (!at) return;
    const text = document.querySelector(at.dataset.copy).textContent;
    try { await navigator.clipboard.writeText(text); }
    catch { getSelection().selectAllChildren(document.querySelector(at.dataset.copy)); }
    live(at.dataset.done);
    at.textContent = at.dataset.done;
  });

  // ---- levels and groups ----
  document.addEventListener("input", (event) => { // the table of levels follows the sliders while they move
    const section = event.target.closest?.("[data-levels]");
    if (!section || !event.target.dataset.level) return;
    const [finest, coarsest] = ["finest", "coarsest"].map((key) => section.querySelector(`[data-level=${key}]`));
    if (+coarsest.value < +finest.value) (event.target === finest ? coarsest : finest).value = event.target.value;
    for (const slider of [finest, coarsest]) {
      const name = section.querySelector(`th[data-at="${slider.value}"]`).textContent;
      slider.setAttribute("aria-valuetext", name);
      section.querySelector(`output[data-of=${slider.dataset.level}]`).value = name;
    }
    for (const cell of section.querySelectorAll("[data-at]")) {
      cell.classList.toggle("off", +cell.dataset.at < +finest.value || +cell.dataset.at > +coarsest.value);
    }
  });
  let dragged = null;
  document.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.("li[draggable=true]");
    if (dragged) { event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", ""); }
  });
  for (const kind of ["dragover", "dragleave", "drop", "dragend"]) {
    document.addEventListener(kind, (event) => {
      if (!dragged) return;
      const target = event.target.closest?.("[data-group]");
      for (const each of document.querySelectorAll(".over")) each.classList.remove("over");
      if (kind === "dragend") { dragged = null; return; }
      if (!target || dragged.contains(target)) return;
      event.preventDefault();
      if (kind === "dragover") target.classList.add("over");
      if (kind !== "drop") return;
      const form = dragged.closest("form[data-tree]");
      const boxes = [...form.querySelectorAll("input[name=node]")];
      const own = dragged.querySelector("input[name=node]");
      if (!own.checked) for (const box of boxes) box.checked = box === own; // chosen lines move together
      form.querySelector("input[name=target]").value = target.dataset.node;
      form.requestSubmit(form.querySelector("button[value=move]"));
      dragged = null;
    });
  }

  // A link to a place on this page, such as the one past the frame, is one of its steps back too, but no other page.
  window.addEventListener("popstate", () => { if (without_fragment(location.href) !== shown) refresh(); });
  window.addEventListener("resize", current_step);

  // ---- files ----
  async function upload(file, input) {
    const bar = document.getElementById("upload-progress");
    if (bar) bar.hidden = false;
    try {
      const answer = await fetch(`${input.dataset.upload}?name=${encodeURIComponent(file.name)}`,
        { method: "POST", body: file, headers: { "X-Sfumato-Sign": sign() }, credentials: "same-origin" });
      const text = await answer.text();
      if (answer.status === 201) { location.assign(text); return; }
      live(text);
      const place = document.createElement("p");
      place.className = "alarm"; place.setAttribute("role", "alert"); place.textContent = text;
      input.closest(".drop").append(place);
    } catch { gone(); } finally { if (bar) bar.hidden = true; }
  }
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
      event.preventDefault(); // a file that misses its place must not be opened in the page
      const zone = event.target.closest?.("[data-drop]");
      zone?.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && zone && event.dataTransfer.files.length) {
        upload(event.dataTransfer.files[0], zone.querySelector("[data-upload]"));
      }
    });
  }

  // ---- runs ----
  function follow() {
    const address = document.getElementById("main")?.dataset.events;
    if (stream && stream.address === address) return;
    stream?.close();
    stream = null;
    if (!address) return;
    stream = new EventSource(address);
    stream.address = address;
    const states = new Map();
    let failures = 0;
    stream.addEventListener("open", () => { failures = 0; document.getElementById("gone")?.remove(); });
    stream.addEventListener("error", () => { if (++failures > 1) gone(); }); // the first may be the end of a long answer
    stream.addEventListener("message", (event) => {
      const { run, state, html } = JSON.parse(event.data);
      const before = states.get(run);
      states.set(run, state);
      const place = document.getElementById(`run-${run}`);
      if (place && state === "running") {
        const focused = place.contains(document.activeElement);
        place.innerHTML = html;
        if (focused) place.querySelector("button")?.focus();
      }
      if ((before === "running" || (before === undefined && place?.querySelector("progress"))) && state !== "running") refresh();
    });
  }
  window.addEventListener("pagehide", () => { stream?.close(); stream = null; });
  current_step();
  follow();
  at_once();
})();
