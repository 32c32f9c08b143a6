// The page: the list of jobs, the job's fields, and the cells of its ranks.
import { Cells } from "./cells.js";
import { colourRanks, formatCss, readColours } from "./colours.js";
import { Frame } from "./frame.js";
import { drawCurves, drawTimeLine } from "./history.js";
import { RankOutput } from "./output.js";
import { followEvents, getJobs, Refused, takeAccess } from "./requests.js";
import { showSignIn } from "./sign_in.js";
import { FAILED, STATES, UNKNOWN } from "./states.js";

const JOBS_MILLISECONDS = 2000;

const find = (id) => document.getElementById(id);
const cells = new Cells(find("cells"));
const frame = new Frame();
const output = new RankOutput(find);
let colours = readColours();
let mode = "state";
let followedKey = null;
let stopFollowing = null;
let isPaintDue = false;

function setText(element, text) {
  // A status region is read aloud whenever its text is set, even to the same text.
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function make(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

async function refreshJobs() {
  try {
    const { jobs } = await getJobs();
    showJobs(jobs);
    showSignIn(find, false);
  } catch (error) {
    showSignIn(find, error instanceof Refused && error.needsToken);
    setText(find("connection"), error instanceof Refused ? error.message : "muster board does not answer.");
  }
  setTimeout(refreshJobs, JOBS_MILLISECONDS);
}

function showJobs(jobs) {
  const select = find("jobs");
  const texts = jobs.map((job) => `${job.title} · ${job.phase}`);
  const isSame = texts.length === select.length && texts.every((text, index) => select.options[index].text === text);
  if (!isSame) {
    select.replaceChildren(...jobs.map((job, index) => new Option(texts[index], job.key)));
    select.disabled = jobs.length === 0;
  }
  if (jobs.length === 0) {
    setText(find("message"), "There are no jobs here yet.");
    return;
  }
  const key = jobs.some((job) => job.key === followedKey) ? followedKey : jobs[0].key;
  select.value = key;
  follow(key);
}

function follow(key) {
  if (key === followedKey) {
    return;
  }
  stopFollowing?.abort();
  stopFollowing = new AbortController();
  followedKey = key;
  cells.selected = null;
  const { signal } = stopFollowing;
  const onEvent = (event) => {
    if (!signal.aborted) {
      frame.apply(event, performance.now());
      requestPaint();
    }
  };
  followEvents(`api/jobs/${encodeURIComponent(key)}/events`, signal, onEvent, (text) =>
    setText(find("connection"), text),
  );
}

function requestPaint() {
  if (!isPaintDue && frame.receivedAt > 0) {
    isPaintDue = true;
    requestAnimationFrame(() => {
      isPaintDue = false;
      paint();
    });
  }
}

function paint() {
  const begunAt = performance.now();
  const colouring = colourRanks(frame, mode, colours);
  cells.paint(frame, colouring, colours);
  showFields();
  showLegend(colouring);
  showSelected();
  showProblems();
  showHistory();
  // bench/board.py reads it.
  document.documentElement.dataset.paintMilliseconds = (performance.now() - begunAt).toFixed(1);
}

function showFields() {
  const { name, phase, message, notice, step, percent, attempt, elapsedSeconds } = frame.fields;
  document.title = `${name} · ${phase} · muster board`;
  setText(find("job-name"), name);
  setText(find("phase"), phase);
  find("phase").dataset.phase = phase;
  setText(find("message"), message);
  find("notice").hidden = !notice;
  setText(find("notice"), notice);
  const nodes = Math.ceil(frame.world / frame.fields.procsPerNode);
  showNumbers([
    ["Nodes", nodes.toLocaleString("en")],
    ["Ranks", frame.world.toLocaleString("en")],
    ["Attempt", attempt],
    ["Elapsed", formatElapsed(elapsedSeconds)],
    ["Step", step?.toLocaleString("en") ?? "–"],
    ...(percent === null ? [] : [["Done", `${percent} %`]]),
  ]);
}

function showNumbers(numbers) {
  const list = find("numbers");
  if (list.childElementCount !== numbers.length) {
    list.replaceChildren(
      ...numbers.map(([title]) => {
        const group = document.createElement("div");
        group.append(make("dt", title), make("dd", ""));
        return group;
      }),
    );
  }
  numbers.forEach(([title, value], index) => {
    const [term, description] = list.children[index].children;
    setText(term, title);
    setText(description, String(value));
  });
}

function showLegend({ palette, scale }) {
  const entries =
    mode === "state"
      ? [...frame.countStates()].sort((one, other) => other[0] - one[0]).map(([state, count]) => [
          palette[state],
          `${count.toLocaleString("en")} ${STATES[state]}`,
        ])
      : listScale(palette, scale);
  const list = find("legend");
  while (list.childElementCount > entries.length) {
    list.lastElementChild.remove();
  }
  while (list.childElementCount < entries.length) {
    const item = document.createElement("li");
    const swatch = make("span", "");
    swatch.className = "swatch";
    item.append(swatch, make("span", ""));
    list.append(item);
  }
  entries.forEach(([colour, text], index) => {
    const [swatch, label] = list.children[index].children;
    swatch.style.background = formatCss(colour);
    setText(label, text);
  });
}

function listScale(palette, scale) {
  const unknown = [palette.at(-2), "not known"];
  const failed = [palette.at(-1), "failed"];
  if (!scale) {
    return [unknown, failed];
  }
  const levels = palette.length - 2;
  const ends = [
    [palette[0], formatValue(scale.low)],
    [palette[levels - 1], formatValue(scale.high)],
  ];
  return [...ends, unknown, failed];
}

function formatValue(value) {
  return mode === "skew" ? formatBehind(value) : formatMicroseconds(value);
}

function formatBehind(steps) {
  return `${steps.toLocaleString("en")} ${steps === 1 ? "step" : "steps"} behind`;
}

function formatMicroseconds(value) {
  if (value >= 1e6) {
    return `${Number((value / 1e6).toPrecision(2))} s a step`;
  }
  return value >= 1e3 ? `${Number((value / 1e3).toPrecision(2))} ms a step` : `${value} µs a step`;
}

function formatElapsed(seconds) {
  const pad = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const rest = `${pad(minutes % 60)}:${pad(seconds % 60)}`;
  return minutes >= 60 ? `${Math.floor(minutes / 60)}:${rest}` : rest;
}

function showSelected() {
  const rank = cells.selected;
  if (rank === null || rank >= frame.world) {
    setText(find("rank"), "No rank is selected.");
    output.show(null);
    return;
  }
  output.show(followedKey, rank, `Rank ${rank} on ${frame.findNode(rank)}`);
  const problem = frame.fields.problems.find((entry) => entry.rank === rank);
  const behind = frame.stepsBehind[rank];
  const time = frame.stepMicroseconds[rank];
  const parts = [
    `Rank ${rank} on ${frame.findNode(rank)}: ${STATES[frame.states[rank]]}`,
    problem?.end,
    behind === UNKNOWN ? "" : formatBehind(behind),
    time === UNKNOWN ? "" : formatMicroseconds(time),
    problem?.message,
  ];
  setText(find("rank"), parts.filter(Boolean).join(" · "));
}

let shownSecond = "";

// The time line changes once a second, and not with each paint: selecting a rank draws no history.
function showHistory() {
  const second = `${followedKey} ${frame.fields.elapsedSeconds} ${frame.fields.phase}`;
  if (second !== shownSecond) {
    shownSecond = second;
    drawTimeLine(find, frame.fields);
    drawCurves(find, frame.curves, frame.fields.elapsedSeconds);
  }
}

let shownProblems = "";

function showProblems() {
  const { problems } = frame.fields;
  const text = JSON.stringify(problems);
  if (text === shownProblems) {
    return;
  }
  shownProblems = text;
  find("problem-section").hidden = problems.length === 0;
  find("problems").replaceChildren(...problems.map(makeProblemRow));
}

function makeProblemRow(problem) {
  const row = document.createElement("tr");
  const button = make("button", String(problem.rank));
  button.type = "button";
  button.setAttribute("aria-label", `Select rank ${problem.rank}`);
  button.addEventListener("click", () => select(problem.rank));
  const first = document.createElement("td");
  first.append(button);
  const others = [frame.findNode(problem.rank), problem.state, problem.end, problem.message];
  row.append(first, ...others.map((text) => make("td", text)));
  return row;
}

function select(rank) {
  if (rank !== null && rank >= 0 && rank < frame.world) {
    cells.selected = rank;
    requestPaint();
  }
}

function findNextFailed() {
  const next = frame.states.indexOf(FAILED, (cells.selected ?? -1) + 1);
  return next === -1 ? frame.states.indexOf(FAILED) : next;
}

const KEYS = {
  ArrowLeft: (rank) => rank - 1,
  ArrowRight: (rank) => rank + 1,
  ArrowUp: (rank) => cells.layout.findVertical(rank, -1),
  ArrowDown: (rank) => cells.layout.findVertical(rank, 1),
  Home: () => 0,
  End: () => frame.world - 1,
  f: findNextFailed,
};

function onKey(event) {
  const move = event.ctrlKey || event.altKey || event.metaKey ? undefined : KEYS[event.key];
  if (move && frame.world > 0) {
    event.preventDefault();
    const isMove = cells.selected !== null || event.key === "End" || event.key === "f";
    select(isMove ? move(cells.selected) : 0);
  }
}

takeAccess();
find("jobs").addEventListener("change", (event) => follow(event.target.value));
find("modes").addEventListener("change", (event) => {
  mode = event.target.value;
  requestPaint();
});
window.addEventListener("resize", requestPaint);
// Another link to this board was opened in the same tab.
window.addEventListener("hashchange", () => location.reload());
find("cells").addEventListener("keydown", onKey);
find("cells").addEventListener("click", (event) => select(cells.findRankAt(event)));
new ResizeObserver(requestPaint).observe(find("cells"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours = readColours();
  requestPaint();
});
refreshJobs();
