// The form of a cluster's board: the namespace to show, and a token of the cluster.
import { readNamespace, storeAccess } from "./requests.js";

let isReady = false;

// Show the form on a board that needs a token: always, so that another namespace can be entered.
export function showSignIn(find, needsToken) {
  const form = find("sign-in");
  if (!needsToken && readNamespace() === null) {
    return;
  }
  form.hidden = false;
  if (!isReady) {
    isReady = true;
    find("namespace").value = readNamespace() ?? "";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      storeAccess(find("namespace").value.trim(), find("token").value.trim() || null);
      location.reload();
    });
  }
}
