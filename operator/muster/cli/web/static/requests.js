// Requests with the token from the page's URL. EventSource can't send it in a header, so fetch reads the events.

const TOKEN_KEY = "muster-board-token";
const RETRY_MILLISECONDS = 1000;

export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    // A reload of the page needs the token, and a screenshot or a copied URL must not have it.
    sessionStorage.setItem(TOKEN_KEY, token);
    history.replaceState(null, "", location.pathname);
  }
}

async function request(path, signal) {
  const token = sessionStorage.getItem(TOKEN_KEY) ?? "";
  const response = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, signal });
  if (!response.ok) {
    throw new Refused((await response.text()).trim() || `the server answered ${response.status}`);
  }
  return response;
}

export class Refused extends Error {}

export async function getJson(path) {
  return (await request(path)).json();
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
