// Which view is shown, what keeps it fresh, and what the keyboard does.
import { api, listen, onLoginNeeded, onSample } from "./api.js";
import { h, notice, shown } from "./dom.js";
import { brokerView } from "./broker.js";
import { groupView } from "./group.js";
import { groupsView } from "./groups.js";
import { topicView, topicsView } from "./topics.js";

const main = document.getElementById("main");
let current = null;
let turn = 0;

const KEYS = [["g", "groups"], ["t", "topics"], ["b", "broker"], ["/", "filter"], ["r", "reset this group"], ["Esc", "close, or back"], ["?", "this help"]];

function find() {
  const [, section = "groups", ...rest] = location.hash.split("/");
  const name = rest.length ? decoded(rest.join("/")) : null;
  if (section === "topics") return [section, name === null ? topicsView() : topicView(name)];
  if (section === "broker") return [section, brokerView()];
  return ["groups", name === null ? groupsView() : groupView(name)];
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function show() {
  const mine = ++turn;
  if (current) current.close();
  const [section, view] = find();
  current = view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.section === section) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.replaceChildren(view.node);
  document.title = `${view.title} · Lowwater`;
  refresh(mine);
}

async function refresh(mine = turn) {
  try {
    await current.refresh();
    if (mine === turn) main.querySelector(".failure.whole")?.remove();
  } catch (error) {
    if (mine !== turn || error.status === 401) return;
    main.querySelector(".failure.whole")?.remove();
    main.prepend(h("p", { class: "failure whole", role: "alert" }, shown(error.message)));
  }
}

let busy = false;
onSample(async () => {
  if (busy || document.hidden) return;
  busy = true;
  try { await refresh(); } finally { busy = false; }
});

const live = document.getElementById("live");
function state(name, told) {
  live.dataset.state = name;
  live.textContent = { live: "live", part: "live, in part", lost: "no connection" }[name];
  live.title = told && told.errors ? `${told.errors} part(s) of the cluster did not answer` : "Whether new figures come in";
}

function login() {
  if (document.querySelector("dialog.login")) return;
  const field = h("input", { type: "password", autocomplete: "current-password", "aria-label": "Password", required: true });
  const failure = h("p", { class: "failure" });
  const dialog = h("dialog", { class: "login" }, h("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      await api.login(field.value);
      location.reload();
    } catch (error) {
      failure.textContent = error.message;
    }
  } }, h("h2", {}, "Log in"), field, failure, h("button", { class: "main" }, "Log in")));
  document.body.append(dialog);
  dialog.showModal();
}

function help() {
  const rows = KEYS.map(([key, what]) => h("li", {}, h("kbd", {}, key), ` ${what}`));
  const dialog = h("dialog", { class: "help", onclose: () => dialog.remove() }, h("h2", {}, "Keys"), h("ul", {}, rows),
    h("form", { method: "dialog" }, h("button", { class: "main" }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, dialog");
  if (event.key === "Escape" && !typing && location.hash.split("/").length > 2) {
    location.hash = location.hash.split("/").slice(0, 2).join("/");
    return;
  }
  if (typing) return;
  const go = { g: "#/groups", t: "#/topics", b: "#/broker" }[event.key];
  if (go) location.hash = go;
  else if (event.key === "?") help();
  else if (event.key === "/") main.querySelector("input")?.focus();
  else if (event.key === "r" && current.reset) current.reset();
  else return;
  event.preventDefault(); // the key is not typed into what it opened
});

const theme = document.getElementById("theme");
const KEPT = "lowwater-theme";
const kept = localStorage.getItem(KEPT);
if (kept) document.documentElement.dataset.theme = kept;
theme.addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem(KEPT, document.documentElement.dataset.theme);
  show();
});

onLoginNeeded(login);
window.addEventListener("hashchange", show);
window.addEventListener("unhandledrejection", (event) => notice(event.reason?.message || String(event.reason), { bad: true }));
show();
listen(state);
