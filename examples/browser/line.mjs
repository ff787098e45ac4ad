// A connection that a test can cut.
import { connect, createServer } from 'node:net';

/** Stands between the page and the server, and can cut what passes through it. */
export class Line {
  #sockets = new Set();
  #server;

  async to(port) {
    this.#server = createServer((client) => {
      const server = connect(port, 'localhost');
      for (const [socket, other] of [[client, server], [server, client]]) {
        this.#sockets.add(socket);
        socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket) && other.destroy()).pipe(other);
      }
    });
    await new Promise((done) => this.#server.listen(0, 'localhost', done));
    return `http://localhost:${this.#server.address().port}`;
  }

  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.#server.close();
    this.cut();
  }
}
