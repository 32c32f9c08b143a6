// A frame: the fields of the job, and typed arrays with a number for each rank. See muster/cli/board/frame_json.py.
import { UNKNOWN } from "./states.js";

const RUN = 3;

export class Frame {
  constructor() {
    this.fields = { name: "", world: 0, procsPerNode: 1, members: [], problems: [] };
    this.states = new Uint8Array(0);
    this.stepsBehind = new Int32Array(0);
    this.stepMicroseconds = new Float64Array(0);
    this.curves = [];
    this.receivedAt = 0;
  }

  apply(event, now) {
    const { columns, curves, ...fields } = event;
    if (event.isFull) {
      this.states = new Uint8Array(event.world);
      this.stepsBehind = new Int32Array(event.world).fill(UNKNOWN);
      this.stepMicroseconds = new Float64Array(event.world).fill(UNKNOWN);
    }
    this.fields = fields;
    // An event without curves changes none.
    this.curves = curves ?? this.curves;
    this.receivedAt = now;
    applyRuns(this.states, columns.states);
    applyRuns(this.stepsBehind, columns.stepsBehind);
    applyRuns(this.stepMicroseconds, columns.stepMicroseconds);
  }

  get world() {
    return this.states.length;
  }

  findNode(rank) {
    const nodeRank = Math.floor(rank / this.fields.procsPerNode);
    return `${this.fields.name}-${this.fields.members[nodeRank] ?? nodeRank}`;
  }

  countStates() {
    const counts = new Map();
    for (const state of this.states) {
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    return counts;
  }
}

function applyRuns(column, runs) {
  for (let index = 0; index < runs.length; index += RUN) {
    column.fill(runs[index + 2], runs[index], runs[index] + runs[index + 1]);
  }
}
