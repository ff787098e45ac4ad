// Builds Studio: stable names and no hashes, so that a change of the sources changes few
// files of dist, which is committed. The server finds out by itself what is new (ETags).
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Where "make dev" finds the server. */
const server = process.env.HOLDFAST_URL ?? 'http://localhost:8080';
const routes = ['/agents', '/demo', '/healthz', '/metrics', '/openapi.json', '/overview', '/questions', '/readyz', '/runs', '/settings', '/threads', '/ui/config.json'];

/** Says the order of the layers before any of them: the bundler puts styles in the order of its chunks. */
const layersFirst: Plugin = {
  name: 'layers-first',
  enforce: 'post',
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === 'asset' && file.fileName.endsWith('.css')) file.source = `@layer tokens, base, ui, app, panels;\n${String(file.source)}`;
    }
  },
};

/** Names in the page what its script imports, so that the browser asks for all of it at once. */
const allAtOnce: Plugin = {
  name: 'all-at-once',
  transformIndexHtml: {
    order: 'post',
    handler: (_, { chunk }) => chunk?.imports.map((file) => ({ tag: 'link', attrs: { rel: 'modulepreload', href: `./${file}` }, injectTo: 'head' as const })),
  },
};

export default defineConfig({
  root: here('.'),
  // Relative, because the page may be below a path prefix.
  base: './',
  plugins: [react(), layersFirst, allAtOnce],
  resolve: {
    alias: [
      { find: /^@ag-ui\/proto$/, replacement: here('src/log/noproto.ts') },
      { find: /^holdfast-agent$/, replacement: here('../clients/js/dist/index.js') },
      { find: /^holdfast-agent\/(.*)$/, replacement: here('../clients/js/dist/$1.js') },
    ],
    // Our client is outside this folder, and takes the packages that are here.
    dedupe: ['@ag-ui/client', '@ag-ui/core', 'rxjs', 'react', 'react-dom'],
  },
  server: { proxy: Object.fromEntries(routes.map((r) => [r, { target: server, changeOrigin: true }])) },
  build: {
    target: 'es2022',
    outDir: process.env.HOLDFAST_DIST ?? here('dist'),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // One file: the styles of what is loaded later are small, and nothing moves when it comes.
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: {
      output: {
        entryFileNames: 'ui/app.js',
        chunkFileNames: (chunk) => `ui/${chunk.name.toLowerCase()}.js`,
        assetFileNames: (asset) => (asset.names.some((n) => n.endsWith('.css')) ? 'ui/app.css' : 'ui/[name][extname]'),
      },
    },
  },
  test: {
    maxWorkers: 2,
    css: false,
    // The official client says on the console what it does not accept; what a test that fails prints is shown.
    silent: 'passed-only',
    // What tests leave behind they take away: see test/setup.ts.
    isolate: false,
    // A busy machine is slow, not wrong.
    testTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    projects: [
      // What has no DOM is tested without one, which is quicker.
      { extends: true, test: { name: 'logic', environment: 'node', include: ['src/**/*.test.ts', 'test/**/*.test.mjs'] } },
      { extends: true, test: { name: 'components', environment: 'jsdom', include: ['src/**/*.test.tsx', 'test/**/*.test.tsx'], setupFiles: [here('test/setup.ts')] } },
    ],
  },
});
