// The TypeScript SDK as a host of `outlast stdio`, whose gateway is killed: node v1_relay.mjs
// OUTLAST HOME SERVER ARGS...
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

const [outlast, home, ...server] = process.argv.slice(2);
const env = { ...process.env, XDG_DATA_HOME: home, OUTLAST_BACKGROUND_IDLE_MS: '1000' };

function gateway() {
  const status = execFileSync(outlast, ['gateway', 'status', '--json'], { env, encoding: 'utf8' });
  return JSON.parse(status).gateway.pid;
}

const client = new Client({ name: 'typescript-host', version: '1.0.0' }, { capabilities: {} });
const settings = JSON.stringify({ retry: 'rerun' });
await client.connect(new StdioClientTransport({
  command: outlast,
  args: ['stdio', '--settings', settings, '--', ...server],
  env,
  stderr: 'inherit',
}));
let closed = false;
client.onclose = () => { closed = true; };
const errors = [];
client.onerror = (error) => errors.push(String(error));
await client.listTools();

const before = gateway();
const slow = { name: 'trigger-long-running-operation', arguments: { duration: 4, steps: 4 } };
const call = client.experimental.tasks.callToolStream(slow, CallToolResultSchema, { task: { ttl: 60_000 } });
const created = (await call.next()).value;
assert.equal(created.type, 'taskCreated', JSON.stringify(created));

const plain = client.callTool({ ...slow, arguments: { duration: 600, steps: 1 } }).then(
  (result) => ({ result }),
  (error) => ({ error }),
);
await client.ping();
process.kill(before, 'SIGKILL');

const { error } = await plain;
assert.equal(error?.code, -32603, String(error));
assert.match(error.message, /outcome is unknown/);
console.log('ok      an open plain call ends with an error');

let last;
for await (const message of call) last = message;
assert.equal(last.type, 'result', JSON.stringify(last));
assert.match(last.result.content[0].text, /Long running operation completed/);
console.log('ok      a task that was running has its result');

const echo = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
assert.equal(echo.content[0].text, 'Echo: hello');
assert.notEqual(gateway(), before);
assert.equal(closed, false);
assert.deepEqual(errors, []);
console.log('ok      the host keeps its server');
await client.close();
