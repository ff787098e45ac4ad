// Makes dist from src. The packages are those of examples/copilotkit, which npm has installed there.
import { fileURLToPath } from 'node:url';
import { build } from '../copilotkit/node_modules/esbuild/lib/main.js';

await build({
  absWorkingDir: fileURLToPath(new URL('.', import.meta.url)),
  nodePaths: [fileURLToPath(new URL('../copilotkit/node_modules', import.meta.url))],
  entryPoints: ['src/page.tsx'],
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  jsx: 'automatic',
  logLevel: 'warning',
  define: { 'process.env.NODE_ENV': '"production"' },
  loader: { '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
});
