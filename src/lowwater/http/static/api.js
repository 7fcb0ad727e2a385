// Asking the server. Refusals become Refused, with the server's own words.

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const LISTENING = new Set();
let needsLogin = () => {};

export function onLoginNeeded(callback) { needsLogin = callback; }

async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refused(0, "UNREACHABLE", "the server does not answer");
  }
  if (response.status === 204) return null;
  let value = null;
  try { value = await response.json(); } catch { /* said below */ }
  if (response.ok) return value;
  if (response.status === 401 && path !== "/login") needsLogin();
  const told = value && value.error ? value.error : { code: "UNKNOWN", message: `the server answers ${response.status}` };
  throw new Refused(response.status, told.code, told.message);
}

const part = encodeURIComponent;
const group = (name, rest = "") => `/consumer-groups/${part(name)}${rest}`;
const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

export const api = {
  login: (password) => ask("POST", "/login", { password }),
  groups: (wanted) => ask("GET", `/consumer-groups${query(wanted)}`),
  group: (name) => ask("GET", group(name)),
  courses: (name) => ask("GET", group(name, "/course")),
  changes: (name) => ask("GET", group(name, "/changes")),
  reset: (name, wanted) => ask("POST", group(name, "/reset"), wanted),
  undo: (name, change) => ask("POST", group(name, "/undo"), change ? { change } : {}),
  remove: (name) => ask("DELETE", group(name)),
  topics: (wanted) => ask("GET", `/topics${query(wanted)}`),
  topic: (name) => ask("GET", `/topics/${part(name)}`),
  records: (name, wanted) => ask("GET", `/topics/${part(name)}/records${query(wanted)}`),
  cluster: () => ask("GET", "/cluster"),
};

/** Calls back with the time of each new look at the cluster; returns what ends it. */
export function onSample(callback) {
  LISTENING.add(callback);
  return () => LISTENING.delete(callback);
}

export function listen(state) {
  const source = new EventSource("/events");
  source.addEventListener("sample", (event) => {
    const told = JSON.parse(event.data);
    state(told.errors ? "part" : "live", told);
    for (const one of LISTENING) one(told);
  });
  source.addEventListener("error", () => state("lost", null));
  return source;
}
