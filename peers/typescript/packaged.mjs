// The TypeScript SDK as a host of an installed package: node packaged.mjs OUTLAST LAUNCHER SERVER
// ARGS... LAUNCHER is the command of a host's file as JSON, such as
// ["npx", "--offline", "outlast"]. It writes mcp.json as a host has it, connects by its lines,
// kills each gateway, and continues.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

const [outlast, launcher, command, ...args] = process.argv.slice(2);
const [launch, ...launchArgs] = JSON.parse(launcher);
const retry = { retry: 'rerun' };

const run = (...words) => execFileSync(outlast, words, { encoding: 'utf8' }).trim();
const gateway = () => JSON.parse(run('gateway', 'status', '--json')).gateway.pid;

async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

// Starts `outlast serve` and waits until it prints its URL.
async function serve(port) {
  const child = spawn(outlast, ['serve', '--http', `127.0.0.1:${port}`, '--config', 'servers.json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve);
    child.once('exit', (code) => reject(new Error(`outlast serve ended with ${code}`)));
  });
  return child;
}

function transport(line) {
  if (line.url) return new StreamableHTTPClientTransport(new URL(line.url), { requestInit: { headers: line.headers } });
  const env = { ...process.env, ...line.env };
  return new StdioClientTransport({ command: line.command, args: line.args, env, stderr: 'inherit' });
}

// Begins a task, kills the gateway, and gets the result.
async function outlasts(line, afterKill) {
  const client = new Client({ name: 'packaged-host', version: '1.0.0' }, { capabilities: {} });
  await client.connect(transport(line));
  const { tools } = await client.listTools();
  assert.ok(tools.some((tool) => tool.name === 'echo'));
  const slow = { name: 'trigger-long-running-operation', arguments: { duration: 2, steps: 2 } };
  const call = client.experimental.tasks.callToolStream(slow, CallToolResultSchema, { task: { ttl: 120_000 } });
  const { value: created } = await call.next();
  assert.equal(created.type, 'taskCreated', JSON.stringify(created));
  process.kill(gateway(), 'SIGKILL');
  await afterKill();
  let last;
  for await (const message of call) last = message;
  assert.equal(last.type, 'result', JSON.stringify(last));
  assert.match(last.result.content[0].text, /Long running operation completed/);
  const echo = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  assert.equal(echo.content[0].text, 'Echo: hello');
  await client.close();
}

const limit = setTimeout(() => {
  console.error('no result after 4 minutes');
  process.exit(1);
}, 240_000);

writeFileSync('servers.json', JSON.stringify({ mcpServers: { everything: { command, args, outlast: retry } } }));
const port = await freePort();
let child = await serve(port);
writeFileSync('mcp.json', JSON.stringify({
  mcpServers: {
    gateway: {
      type: 'http',
      url: `http://127.0.0.1:${port}/mcp`,
      headers: { Authorization: `Bearer ${run('gateway', 'token')}` },
    },
    relay: {
      command: launch,
      args: [...launchArgs, 'stdio', '--settings', JSON.stringify(retry), '--', command, ...args],
      env: { OUTLAST_BACKGROUND_IDLE_MS: '1000' },
    },
  },
}));
const lines = JSON.parse(readFileSync('mcp.json', 'utf8')).mcpServers;

await outlasts(lines.gateway, async () => {
  if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve));
  child = await serve(port);
});
console.log('ok      outlast serve: a task has its result after a kill and a return');

child.kill('SIGTERM');
const [code] = await new Promise((resolve) => child.once('exit', (...ended) => resolve(ended)));
assert.equal(code, 0);
console.log('ok      outlast serve ends by SIGTERM');

await outlasts(lines.relay, async () => {});
console.log('ok      outlast stdio: a task has its result after a kill and a return');
clearTimeout(limit);
