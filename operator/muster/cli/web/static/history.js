// The attempts on a time line, the lost time by cause, and the metrics as curves. Drawn as SVG.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;
const BAR = { top: 4, height: 22 };
const CURVE = { width: 280, height: 90 };

export function formatSeconds(seconds) {
  if (seconds < 60) {
    return `${Number(seconds.toFixed(1))} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function makeShape(tag, attributes, parent) {
  const shape = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    shape.setAttribute(name, value);
  }
  parent.append(shape);
  return shape;
}

function makeItem(text, className) {
  const item = document.createElement("li");
  item.textContent = text;
  item.className = className;
  return item;
}

// The parts of the bar, in seconds since the begin of the job: each attempt, and the loss after it.
export function listParts({ attempt, at, elapsedSeconds, timeLine }) {
  const begin = at - elapsedSeconds;
  const parts = [];
  let startedAt = begin;
  for (const ended of timeLine.attempts) {
    const endedAt = Math.min(Math.max(ended.endedAt, startedAt), at);
    const runsAgainAt = ended.secondsLost === null ? at : Math.min(endedAt + ended.secondsLost, at);
    parts.push({ kind: "attempt", number: ended.attempt, start: startedAt - begin, end: endedAt - begin });
    parts.push({ kind: "loss", start: endedAt - begin, end: runsAgainAt - begin });
    startedAt = runsAgainAt;
  }
  if (startedAt < at) {
    parts.push({ kind: "attempt", number: attempt, start: startedAt - begin, end: elapsedSeconds });
  }
  return parts;
}

export function drawTimeLine(find, fields) {
  const { timeLine, elapsedSeconds } = fields;
  find("time-section").hidden = elapsedSeconds === 0;
  const svg = find("time-line");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${BAR.top + BAR.height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren();
  const scale = WIDTH / Math.max(elapsedSeconds, 1);
  for (const part of listParts(fields)) {
    const width = Math.max((part.end - part.start) * scale, 1);
    const place = { x: part.start * scale, y: BAR.top, width, height: BAR.height, class: part.kind };
    const text = part.kind === "loss" ? "Time lost" : `Attempt ${part.number}`;
    const title = makeShape("title", {}, makeShape("rect", place, svg));
    title.textContent = `${text}: ${formatSeconds(part.end - part.start)}`;
  }
  const lost = timeLine.lost.map(({ cause, seconds }) => makeItem(`${cause}: ${formatSeconds(seconds)}`, "lost"));
  const productive = `productive: ${formatSeconds(timeLine.productiveSeconds)}`;
  const share = `of ${formatSeconds(timeLine.totalSeconds)} that count`;
  const items = timeLine.totalSeconds > 0 ? [makeItem(`${productive} ${share}`, "productive"), ...lost] : [];
  find("lost").replaceChildren(...items);
  find("attempts").replaceChildren(...timeLine.attempts.map(makeAttempt));
}

function makeAttempt({ attempt, message, secondsLost }) {
  const lost = secondsLost === null ? "" : ` · ${formatSeconds(secondsLost)} until all ranks ran again`;
  const item = makeItem(`${message}${lost}`, "");
  item.value = attempt;
  return item;
}

export function drawCurves(find, curves, elapsedSeconds) {
  find("curve-section").hidden = curves.length === 0;
  find("curves").replaceChildren(...curves.map((curve) => makeFigure(curve, elapsedSeconds)));
}

function makeFigure({ name, seconds, values }, elapsedSeconds) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const low = Math.min(...values);
  const high = Math.max(...values);
  caption.textContent = `${name} ${formatValue(values.at(-1))}`;
  const range = document.createElement("span");
  range.textContent = `${formatValue(low)} to ${formatValue(high)}`;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${CURVE.width} ${CURVE.height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${name}: now ${formatValue(values.at(-1))}, ${range.textContent}`);
  const height = CURVE.height - 8;
  const points = values.map((value, index) => {
    const x = (seconds[index] / Math.max(elapsedSeconds, 1)) * CURVE.width;
    const share = high > low ? (value - low) / (high - low) : 0.5;
    return `${x.toFixed(1)},${(4 + height * (1 - share)).toFixed(1)}`;
  });
  makeShape("polyline", { points: points.join(" ") }, svg);
  const [x, y] = points.at(-1).split(",");
  makeShape("circle", { cx: Math.min(x, CURVE.width - 3), cy: y, r: 3 }, svg);
  figure.append(caption, range, svg);
  return figure;
}

function formatValue(value) {
  return String(Number(value.toPrecision(4)));
}
