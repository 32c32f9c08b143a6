// The last lines and the last stack of the selected rank, read again while the page shows it.
import { getJson, Refused } from "./requests.js";

const INTERVAL_MILLISECONDS = 2000;

export class RankOutput {
  constructor(find) {
    this.find = find;
    this.timer = null;
    this.shown = "";
  }

  // Show a rank; `key` null: none.
  show(key, rank, title) {
    const shown = key === null ? "" : `${key}/${rank}`;
    if (shown === this.shown) {
      return;
    }
    this.shown = shown;
    clearTimeout(this.timer);
    this.find("output-section").hidden = key === null;
    if (key !== null) {
      this.find("output-title").textContent = title;
      this.fill({ lastLines: [], stackLines: [] });
      this.refresh(shown, `api/jobs/${encodeURIComponent(key)}/ranks/${rank}`);
    }
  }

  async refresh(shown, path) {
    const output = await getJson(path).catch(explainRefusal);
    if (shown === this.shown) {
      if (output !== null) {
        this.fill(output);
      }
      this.timer = setTimeout(() => this.refresh(shown, path), INTERVAL_MILLISECONDS);
    }
  }

  fill({ lastLines, stackLines }) {
    this.find("stack-block").hidden = stackLines.length === 0;
    setLines(this.find("stack"), stackLines);
    setLines(this.find("lines"), lastLines.length === 0 ? ["The rank has printed nothing yet."] : lastLines);
  }
}

// A board may show no logs, or not to this reader: say it where the lines would be.
function explainRefusal(error) {
  return error instanceof Refused ? { lastLines: [error.message], stackLines: [] } : null;
}

function setLines(element, lines) {
  const text = lines.join("\n");
  if (element.textContent !== text) {
    // Follow the end, unless the reader has scrolled up.
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 8;
    element.textContent = text;
    if (isAtEnd) {
      element.scrollTop = element.scrollHeight;
    }
  }
}
