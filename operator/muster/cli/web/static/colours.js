// The colour of each rank: by its state, by the steps it is behind, or by its time of a step.
import { FAILED, STATES, UNKNOWN } from "./states.js";

const LEVELS = 16;
const NEVER_FLAT = 1.25;

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => parseColour(style.getPropertyValue(`--${name}`).trim());
  const low = read("scale-low");
  const high = read("scale-high");
  return {
    states: STATES.map((state) => read(state.toLowerCase())),
    scale: Array.from({ length: LEVELS }, (_, level) => mix(low, high, level / (LEVELS - 1))),
    unknown: read("pending"),
    failed: read("failed"),
    text: style.getPropertyValue("--muted").trim(),
    selection: style.getPropertyValue("--selection").trim(),
  };
}

function parseColour(text) {
  return [1, 3, 5].map((start) => Number.parseInt(text.slice(start, start + 2), 16));
}

function mix(low, high, share) {
  return low.map((value, index) => Math.round(value + (high[index] - value) * share));
}

export function formatCss([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

// Whether black is easier to read on this colour than white.
export function isBright([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
}

// Return the colours, and the index of each rank's colour. The last colour is that of a failed rank.
export function colourRanks(frame, mode, colours) {
  if (mode === "state") {
    return { palette: colours.states, indexes: frame.states };
  }
  const values = mode === "skew" ? frame.stepsBehind : frame.stepMicroseconds;
  const scale = findScale(values, mode);
  const palette = [...colours.scale, colours.unknown, colours.failed];
  const indexes = new Uint8Array(values.length);
  for (let rank = 0; rank < values.length; rank += 1) {
    indexes[rank] = frame.states[rank] === FAILED ? LEVELS + 1 : getLevel(values[rank], scale);
  }
  return { palette, indexes, scale };
}

// Steps behind begin at 0. Times begin at the fastest rank, and equal ranks have equal colours despite small noise.
function findScale(values, mode) {
  let low = Infinity;
  let high = 0;
  for (const value of values) {
    if (value !== UNKNOWN) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low === Infinity) {
    return null;
  }
  return mode === "skew" ? { low: 0, high: Math.max(high, 1) } : { low, high: Math.max(high, low * NEVER_FLAT, 1) };
}

function getLevel(value, scale) {
  if (value === UNKNOWN || scale === null) {
    return LEVELS;
  }
  return Math.round(((value - scale.low) / (scale.high - scale.low)) * (LEVELS - 1));
}
