// Patches as the official client applies them. Each line of the input is [before, patch, after]; a patch that the
// client would refuse, or that makes another document, is told, and ends the program.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const client = createRequire(import.meta.url).resolve("@ag-ui/client");
const { applyPatch } = createRequire(client)("fast-json-patch");

let n = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const [before, patch, after] = JSON.parse(line);
  try {
    // Members named __proto__ are compared, too.
    assert.deepEqual(applyPatch(before, patch, true, false).newDocument, after);
  } catch (e) {
    console.log(line);
    throw e;
  }
  n++;
}
console.log(`${n} applied`);
