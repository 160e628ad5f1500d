// Generates the JSON Schemas from the unpacked packages and compares them with the stored files.
// usage: node schemas.mjs CONFORMANCE EXT_TASKS ZOD HELD SCRATCH
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , conformance, extTasks, zod, held, scratch] = process.argv;
const draft = 'https://json-schema.org/draft/2020-12/schema';

// The bundle of the suite contains the schemas of the revisions as object literals.
function literals(text) {
  const start = '{$schema:`' + draft + '`,$defs:{Annotations:';
  const found = [];
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1)) {
    found.push(text.slice(at, endOfLiteral(text, at)));
  }
  return found;
}

function endOfLiteral(text, at) {
  let depth = 0;
  let quote = null;
  for (let i = at; i < text.length; i++) {
    const c = text[i];
    if (quote) {
      if (c === '\\') i++;
      else if (c === quote) quote = null;
    } else if (`"'\``.includes(c)) quote = c;
    else if ('{[('.includes(c)) depth++;
    else if ('}])'.includes(c) && --depth === 0) return i + 1;
  }
  throw new Error('a literal without an end');
}

// The client contains validators. JSON Schema cannot express all their checks, so their wrappers
// are replaced by the plain shapes.
async function extension() {
  let text = readFileSync(join(extTasks, 'dist/core/v2/schemas.js'), 'utf8');
  const swap = (from, to) => {
    if (!from.test(text)) throw new Error(`the package has changed: ${from} is not in it`);
    text = text.replace(from, to);
  };
  swap(/import \{ isJsonValue \} from "[^"]+";/, '');
  swap(/const JsonValueSchema = [^;]+;/, 'const JsonValueSchema = z.any();');
  swap(/const JsonObjectSchema = z\.custom\([\s\S]*?"Expected a JSON object"\);/,
    'const JsonObjectSchema = z.record(z.string(), z.any());');
  swap(/const openObject = \(shape\) => \{[\s\S]*?\n\};/, 'const openObject = (shape) => z.looseObject(shape);');
  const library = pathToFileURL(join(zod, 'v4/index.js')).href;
  swap(/from "zod(\/v4)?"/, `from "${library}"`);
  mkdirSync(scratch, { recursive: true });
  const module = join(scratch, 'schemas.mjs');
  writeFileSync(module, text);
  const { z } = await import(library);
  const validators = Object.entries(await import(pathToFileURL(module).href));
  const $defs = {};
  for (const [name, schema] of validators.sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!name.endsWith('V2Schema')) continue;
    const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', target: 'draft-2020-12', reused: 'inline' });
    delete json.$schema;
    $defs[name.slice(0, -'V2Schema'.length)] = json;
  }
  return { $schema: draft, $defs };
}

const bundle = literals(readFileSync(join(conformance, 'dist/index.js'), 'utf8'));
const made = {
  'mcp-2025-11-25.json': new Function('return ' + bundle[0])(),
  'mcp-2026-07-28.json': new Function('return ' + bundle[1])(),
  'ext-tasks.json': await extension(),
};
let differing = 0;
for (const [name, schema] of Object.entries(made)) {
  const same = readFileSync(join(held, name), 'utf8') === JSON.stringify(schema) + '\n';
  console.log(`${same ? 'same   ' : 'DIFFERS'} ${name}`);
  if (!same) differing++;
}
process.exit(differing === 0 ? 0 : 1);
