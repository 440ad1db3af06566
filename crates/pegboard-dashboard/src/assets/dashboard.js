// Everything works without this script. It keeps what lives up to date, searches as you type, and adds keys.

import { morph } from "./morph.js";

const parser = new DOMParser();

// The server has escaped every text in the HTML that it sends.
const parse = (html) => parser.parseFromString(html, "text/html");

// ---- Live updates

let source;

function connect() {
  const url = document.body.dataset.live;
  if (source) source.close();
  source = undefined;
  if (!url || document.hidden) return;
  source = new EventSource(url);
  const state = document.getElementById("connection");
  source.addEventListener("open", () => state && (state.hidden = true));
  source.addEventListener("error", () => {
    if (state) state.hidden = false;
    // The gateway refuses the stream, which a browser does not ask for again: it was restarted, or the session has ended.
    if (source.readyState === EventSource.CLOSED) setTimeout(loadAgain, 3000);
  });
  source.addEventListener("fragment", (event) => {
    if (paused()) return;
    const { id, html } = JSON.parse(event.data);
    const target = document.getElementById(id);
    const wanted = parse(html).body.firstElementChild;
    if (target && wanted) morph(target, wanted);
  });
  source.addEventListener("over", () => location.reload());
}

// The page itself, or the form to sign in, as soon as the gateway answers.
function loadAgain() {
  if (document.hidden) return;
  fetch(location.href, { method: "HEAD" }).then(() => location.reload(), () => setTimeout(loadAgain, 5000));
}

// Rows do not move under the pointer or the keyboard while a person holds them.
function paused() {
  const box = document.getElementById("hold");
  return Boolean(box && box.checked);
}

// A hidden page costs nothing.
document.addEventListener("visibilitychange", connect);

// ---- Search as you type

let typing;

function search(form) {
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
  fetch(url, { headers: { accept: "text/html" } }).then(async (response) => {
    if (!response.ok || form !== typing) return;
    const page = parse(await response.text());
    const results = document.getElementById("results");
    const wanted = page.getElementById("results");
    if (!results || !wanted) return;
    morph(results, wanted);
    history.replaceState(null, "", url);
    document.body.dataset.live = page.body.dataset.live ?? "";
    connect();
  });
}

function debounce(form) {
  typing = form;
  clearTimeout(debounce.timer);
  debounce.timer = setTimeout(() => search(form), 150);
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-search]");
  if (form) debounce(form);
});

// ---- Keys

const pages = { o: "/", s: "/ui/servers", t: "/ui/tools", c: "/ui/calls", a: "/ui/agents", p: "/ui/policy", f: "/ui/config" };
let went = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && field) return field.blur();
  if (field) return;
  if (event.key === "/") {
    const box = document.querySelector("input[type=search]");
    if (box) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  } else if (event.key === "g") {
    went = event.timeStamp;
  } else if (event.timeStamp - went < 1500 && pages[event.key]) {
    location.assign(pages[event.key]);
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("a[data-row]")];
    const at = rows.indexOf(document.activeElement);
    const next = rows[event.key === "j" ? at + 1 : Math.max(at - 1, 0)];
    if (next) next.focus();
  }
});

// ---- Forms

// A button that was pressed is not pressed twice.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  form.setAttribute("aria-busy", "true");
});

window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.removeAttribute("aria-busy");
  }
});

connect();
