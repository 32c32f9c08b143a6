// Paint the cells: all of them as pixels of one image, and numbers on cells that are large enough.
import { formatCss, isBright } from "./colours.js";
import { Layout } from "./layout.js";
import { FAILED } from "./states.js";

const MAX_SCREEN_SHARE = 0.62;
const MIN_NUMBER_SIZE = 24;
const MIN_CROSS_SIZE = 8;
const MAX_CIRCLES = 200;

export class Cells {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.layout = null;
    this.selected = null;
  }

  paint(frame, { palette, indexes }, colours) {
    const ratio = window.devicePixelRatio || 1;
    this.updateLayout(frame, ratio);
    this.paintRectangles(palette, indexes, frame.world);
    if (this.layout.label > 0) {
      this.paintLabels(frame, colours, ratio);
    }
    if (this.layout.size >= MIN_CROSS_SIZE) {
      this.paintMarks(frame, palette, indexes, ratio);
    } else {
      this.paintCircles(frame, colours, ratio);
    }
    if (this.selected !== null && this.selected < frame.world) {
      this.paintSelection(colours, ratio);
    }
  }

  updateLayout(frame, ratio) {
    const width = Math.max(1, Math.floor(this.canvas.clientWidth * ratio));
    const maxHeight = Math.floor(window.innerHeight * MAX_SCREEN_SHARE * ratio);
    const key = [frame.world, frame.fields.procsPerNode, width, maxHeight, ratio].join();
    if (key !== this.key) {
      this.key = key;
      this.layout = new Layout(frame.world, frame.fields.procsPerNode, width, maxHeight, ratio);
      this.canvas.width = width;
      this.canvas.height = Math.max(1, this.layout.height);
      this.canvas.style.height = `${this.canvas.height / ratio}px`;
      this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
  }

  paintRectangles(palette, indexes, world) {
    const packed = palette.map(([red, green, blue]) => 0xff000000 | (blue << 16) | (green << 8) | red);
    const { size, procs, columns, pitch, label } = this.layout;
    const width = this.canvas.width;
    let start = 0;
    for (let rank = 0; rank < world; rank += 1) {
      const local = rank % procs;
      if (local === 0) {
        const [x, y] = this.layout.getNodeOrigin(rank / procs);
        start = (y + label) * width + x;
      }
      const colour = packed[indexes[rank]];
      let first = start + Math.floor(local / columns) * pitch * width + (local % columns) * pitch;
      for (let row = 0; row < size; row += 1) {
        this.pixels.fill(colour, first, first + size);
        first += width;
      }
    }
    this.context.putImageData(this.image, 0, 0);
  }

  paintLabels(frame, colours, ratio) {
    this.context.font = `${12 * ratio}px system-ui, sans-serif`;
    this.context.textBaseline = "middle";
    this.context.textAlign = "left";
    this.context.fillStyle = colours.text;
    const width = this.layout.blockWidth - this.layout.nodeGap;
    for (let node = 0; node < this.layout.nodes; node += 1) {
      const [x, y] = this.layout.getNodeOrigin(node);
      const name = frame.findNode(node * this.layout.procs);
      this.context.fillText(this.shorten(name, width), x, y + this.layout.label / 2);
    }
  }

  // The end of a node's name is its number, so cut off the beginning.
  shorten(name, width) {
    let text = name;
    while (text.length > 1 && this.context.measureText(text).width > width) {
      text = `…${text.slice(text.startsWith("…") ? 2 : 1)}`;
    }
    return text;
  }

  // A rank's number, and a cross on failed ranks: the colour is not the only sign.
  paintMarks(frame, palette, indexes, ratio) {
    const { size } = this.layout;
    const showsNumbers = size >= MIN_NUMBER_SIZE * ratio;
    this.context.font = `${Math.min(13 * ratio, size / 2)}px system-ui, sans-serif`;
    this.context.textBaseline = "middle";
    this.context.textAlign = "center";
    for (let rank = 0; rank < frame.world; rank += 1) {
      const hasFailed = frame.states[rank] === FAILED;
      if (!hasFailed && !showsNumbers) {
        continue;
      }
      const [x, y] = this.layout.getOrigin(rank);
      this.context.fillStyle = isBright(palette[indexes[rank]]) ? "#111111" : "#ffffff";
      const text = showsNumbers ? `${hasFailed ? "✕ " : ""}${rank}` : "✕";
      this.context.fillText(text, x + size / 2, y + size / 2, size);
    }
  }

  // A cell of two pixels is easy to miss, so circle the first failed ranks.
  paintCircles(frame, colours, ratio) {
    const path = new Path2D();
    const radius = 6 * ratio;
    let rank = frame.states.indexOf(FAILED);
    for (let count = 0; rank !== -1 && count < MAX_CIRCLES; count += 1) {
      const [x, y] = this.layout.getOrigin(rank).map((start) => start + this.layout.size / 2);
      path.moveTo(x + radius, y);
      path.arc(x, y, radius, 0, 2 * Math.PI);
      rank = frame.states.indexOf(FAILED, rank + 1);
    }
    for (const [colour, width] of [
      [colours.selection, 4.5],
      [formatCss(colours.failed), 2],
    ]) {
      this.context.strokeStyle = colour;
      this.context.lineWidth = width * ratio;
      this.context.stroke(path);
    }
  }

  paintSelection(colours, ratio) {
    const [x, y] = this.layout.getOrigin(this.selected);
    const line = Math.max(1, Math.round((this.layout.size >= 12 ? 3 : 2) * ratio));
    const outside = this.layout.size >= 12 ? 0 : line;
    this.context.strokeStyle = colours.selection;
    this.context.lineWidth = line;
    const inset = line / 2 - outside;
    this.context.strokeRect(x + inset, y + inset, this.layout.size - 2 * inset, this.layout.size - 2 * inset);
  }

  findRankAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const ratio = this.canvas.width / box.width;
    return this.layout?.findRank((event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio) ?? null;
  }
}
