// Requests with a token, from the page's URL or from its form. EventSource can't send it in a header, so fetch reads the
// events.

const TOKEN_KEY = "muster-board-token";
const NAMESPACE_KEY = "muster-board-namespace";
const RETRY_MILLISECONDS = 1000;

// Take the token and the namespace from the URL. A reload of the page needs them.
export function takeAccess() {
  const given = new URLSearchParams(location.hash.slice(1));
  storeAccess(given.get("namespace"), given.get("token"));
  if (given.has("token")) {
    // A screenshot or a copied URL must not have the token.
    history.replaceState(null, "", location.pathname);
  }
}

// Store what is not null. sessionStorage belongs to this tab.
export function storeAccess(namespace, token) {
  for (const [key, value] of [[NAMESPACE_KEY, namespace], [TOKEN_KEY, token]]) {
    if (value !== null) {
      sessionStorage.setItem(key, value);
    }
  }
}

// The namespace whose jobs are listed: null on a board that asks for none, "" for all namespaces.
export function readNamespace() {
  return sessionStorage.getItem(NAMESPACE_KEY);
}

async function request(path, signal) {
  const token = sessionStorage.getItem(TOKEN_KEY) ?? "";
  const response = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, signal });
  if (!response.ok) {
    const text = (await response.text()).trim() || `the server answered ${response.status}`;
    throw new Refused(text, response.headers.has("WWW-Authenticate"));
  }
  return response;
}

export class Refused extends Error {
  // `needsToken`: whether another token helps.
  constructor(text, needsToken) {
    super(text);
    this.needsToken = needsToken;
  }
}

export async function getJson(path) {
  return (await request(path)).json();
}

export function getJobs() {
  const namespace = readNamespace();
  return getJson(namespace ? `api/jobs?namespace=${encodeURIComponent(namespace)}` : "api/jobs");
}

// Call onEvent with each event until `signal` is aborted. Connect again after the connection has ended.
export async function followEvents(path, signal, onEvent, onConnection) {
  while (!signal.aborted) {
    try {
      const response = await request(path, signal);
      onConnection("live");
      await readEvents(response.body, onEvent);
      onConnection("The stream has ended. Connecting again…");
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      onConnection(error instanceof Refused ? error.message : "muster board does not answer. Connecting again…");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MILLISECONDS));
  }
}

async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const pieces = value.split("\n");
    for (const piece of pieces.slice(0, -1)) {
      parts.push(piece);
      const line = parts.join("");
      parts = [];
      if (line.startsWith("data: ")) {
        onEvent(JSON.parse(line.slice(6)));
      }
    }
    parts.push(pieces.at(-1));
  }
}
