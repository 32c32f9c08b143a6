// Where the cells are. Each node is a block of cells; the blocks fill rows. All lengths are device pixels.

const MAX_CELL = 56;
const MIN_CELL = 2;

export class Layout {
  // `maxHeight` is the height that the cells should fit into; with many ranks, they need more.
  constructor(world, procsPerNode, width, maxHeight, ratio) {
    this.world = world;
    this.procs = procsPerNode;
    this.nodes = Math.ceil(world / procsPerNode);
    this.width = width;
    let size = Math.round(MAX_CELL * ratio);
    while (size > MIN_CELL && !this.fits(size, ratio, maxHeight)) {
      size -= 1;
    }
    this.place(size, ratio);
  }

  fits(size, ratio, maxHeight) {
    this.place(size, ratio);
    return this.blockWidth <= this.width && this.height <= maxHeight;
  }

  place(size, ratio) {
    this.size = size;
    this.gap = size >= 12 ? Math.round(2 * ratio) : size >= 3 ? 1 : 0;
    this.pitch = size + this.gap;
    this.label = size >= 22 * ratio ? Math.round(18 * ratio) : 0;
    this.nodeGap = size >= 12 ? Math.round(10 * ratio) : size >= 4 ? 3 : 1;
    // A node with many ranks is a square.
    this.columns = this.procs <= 8 ? this.procs : Math.ceil(Math.sqrt(this.procs));
    this.rows = Math.ceil(this.procs / this.columns);
    this.blockWidth = this.columns * this.pitch + this.nodeGap;
    this.blockHeight = this.rows * this.pitch + this.nodeGap + this.label;
    this.blocksPerRow = Math.max(1, Math.floor((this.width + this.nodeGap) / this.blockWidth));
    this.height = Math.ceil(this.nodes / this.blocksPerRow) * this.blockHeight;
  }

  getNodeOrigin(node) {
    return [(node % this.blocksPerRow) * this.blockWidth, Math.floor(node / this.blocksPerRow) * this.blockHeight];
  }

  getOrigin(rank) {
    const [x, y] = this.getNodeOrigin(Math.floor(rank / this.procs));
    const local = rank % this.procs;
    return [x + (local % this.columns) * this.pitch, y + this.label + Math.floor(local / this.columns) * this.pitch];
  }

  findRank(x, y) {
    const column = Math.floor(x / this.blockWidth);
    const left = Math.floor((x % this.blockWidth) / this.pitch);
    const top = Math.floor(((y % this.blockHeight) - this.label) / this.pitch);
    if (column >= this.blocksPerRow || left >= this.columns || top < 0 || top >= this.rows) {
      return null;
    }
    const local = top * this.columns + left;
    const rank = (Math.floor(y / this.blockHeight) * this.blocksPerRow + column) * this.procs + local;
    return local < this.procs && rank < this.world ? rank : null;
  }

  // The rank above or below: in the node's own block, else in the row of blocks beside it.
  findVertical(rank, direction) {
    const [x, y] = this.getOrigin(rank);
    const middle = this.size / 2;
    const inside = this.findRank(x + middle, y + middle + direction * this.pitch);
    if (inside !== null) {
      return inside;
    }
    const local = Math.floor((rank % this.procs) / this.columns);
    const target = direction > 0 ? 0 : this.rows - 1;
    return this.findRank(x + middle, y + middle + direction * this.blockHeight + (target - local) * this.pitch) ?? rank;
  }
}
