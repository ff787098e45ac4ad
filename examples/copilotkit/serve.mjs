// Serves this folder, and says where: node serve.mjs [port].
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const kinds = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css' };
const folder = fileURLToPath(new URL('.', import.meta.url));

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
  const file = createReadStream(join(folder, path === '/' ? 'index.html' : path));
  file.on('open', () => response.writeHead(200, { 'Content-Type': kinds[extname(path) || '.html'] ?? 'application/octet-stream' }));
  file.on('error', () => response.writeHead(404).end());
  file.pipe(response);
});
server.listen(Number(process.argv[2] ?? 3000), 'localhost', () => console.log(`http://localhost:${server.address().port}/`));
