// A proxy that cuts every connection at a random byte of what the server sends, in a frame as
// well as in a header. The places are a function of the seed.
import { connect, createServer } from 'node:net';

/** Returns numbers from 0 to 1 (mulberry32). */
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export class CuttingProxy {
  cuts = 0;
  #server;

  /** @param {number} port the server's @param {() => number} random @param {number} most bytes that a connection may send */
  constructor(port, random, most = 5000) {
    this.#server = createServer((client) => {
      const server = connect(port, '127.0.0.1');
      let left = 1 + Math.floor(random() * most);
      const end = () => {
        client.destroy();
        server.destroy();
      };
      client.on('error', end).on('close', end);
      server.on('error', end).on('close', end);
      client.pipe(server);
      server.on('data', (bytes) => {
        if (left <= 0) return;
        client.write(bytes.subarray(0, left));
        left -= bytes.length;
        if (left > 0) return;
        this.cuts++;
        client.destroySoon(); // what was written still arrives
        server.destroy();
      });
    });
  }

  /** Returns the proxy's address. */
  async listen() {
    await new Promise((done) => this.#server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  close() {
    this.#server.close();
  }
}
