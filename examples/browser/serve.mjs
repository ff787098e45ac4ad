// Serves the folder that it is started in, and says where: node serve.mjs [port].
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const kinds = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css' };

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
  const file = createReadStream(join(process.cwd(), path === '/' ? 'index.html' : path));
  file.on('open', () => response.writeHead(200, { 'Content-Type': kinds[extname(path) || '.html'] ?? 'application/octet-stream' }));
  file.on('error', () => response.writeHead(404).end());
  file.pipe(response);
});
server.listen(Number(process.argv[2] ?? 3000), 'localhost', () => console.log(`http://localhost:${server.address().port}/`));
