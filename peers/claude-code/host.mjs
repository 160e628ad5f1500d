// Claude Code as a host of the gateway: node host.mjs OUTLAST HOME SERVER ARGS...
// It runs without the network: the model is a server on this machine that calls one tool of each
// MCP server.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const [outlast, home, ...server] = process.argv.slice(2);
const platform = createRequire(import.meta.url).resolve(
  `@anthropic-ai/claude-code-${process.platform}-${process.arch}/package.json`,
);
const claude = join(dirname(platform), 'claude');
const run = promisify(execFile);
mkdirSync(home, { recursive: true });

const limit = setTimeout(() => {
  console.error('no result after 4 minutes');
  process.exit(1);
}, 240_000);

// The model: it calls the next tool of `calls` until each has a result, and keeps the results.
const calls = ['relay', 'web'].map((name) => ({
  tool: `mcp__${name}__trigger-long-running-operation`,
  input: { duration: 2, steps: 2 },
}));
const results = [];
const model = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  if (!request.url.startsWith('/v1/messages') || request.url.includes('count_tokens')) {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    return;
  }
  const { model: name, messages } = JSON.parse(Buffer.concat(chunks));
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const answered = blocks.filter((block) => block.type === 'tool_result');
  results.splice(0, results.length, ...answered.map((block) => JSON.stringify(block.content)));
  const call = calls[answered.length];
  const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  const usage = { input_tokens: 1, output_tokens: 1 };
  const about = { id: `msg_${messages.length}`, type: 'message', role: 'assistant', model: name, content: [] };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send('message_start', { message: { ...about, stop_reason: null, stop_sequence: null, usage } });
  if (call) {
    const block = { type: 'tool_use', id: `toolu_${answered.length}`, name: call.tool, input: {} };
    send('content_block_start', { index: 0, content_block: block });
    const partial_json = JSON.stringify(call.input);
    send('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json } });
  } else {
    send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'done' } });
  }
  send('content_block_stop', { index: 0 });
  const stop_reason = call ? 'tool_use' : 'end_turn';
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage });
  send('message_stop', {});
  response.end();
});
await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve));

// An empty home, and no variable of this process that could change the result.
const env = {
  PATH: process.env.PATH,
  HOME: home,
  ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.address().port}`,
  ANTHROPIC_API_KEY: 'unused',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  // The tools are part of the first request.
  ENABLE_TOOL_SEARCH: 'false',
  // It waits for its servers.
  MCP_CONNECTION_NONBLOCKING: 'false',
};
const options = () => ({ cwd: home, env, maxBuffer: 1 << 26 });
const host = async (...words) => {
  const running = run(claude, words, options());
  running.child.stdin.end();
  const { stdout } = await running;
  return stdout;
};

const gateway = spawn(outlast, ['serve', '--http', '127.0.0.1:0', '--name', 'web', '--', ...server], {
  cwd: home,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const url = await new Promise((resolve, reject) => {
  gateway.stdout.once('data', (line) => resolve(line.toString().trim()));
  gateway.once('exit', (code) => reject(new Error(`outlast serve ended with ${code}`)));
});
env.OUTLAST_TOKEN = (await run(outlast, ['gateway', 'token'], options())).stdout.trim();

try {
  await host('mcp', 'add', 'relay', '--', outlast, 'stdio', '--', ...server);
  await host('mcp', 'add', '--transport', 'http', 'web', url, '--header', 'Authorization: Bearer ${OUTLAST_TOKEN}');
  const list = await host('mcp', 'list');
  for (const name of ['relay', 'web']) assert.match(list, new RegExp(`^${name}: .*Connected$`, 'm'));
  console.log('ok      both_servers_are_connected');

  const allowed = calls.map((call) => call.tool).join(',');
  const words = ['-p', 'Call the tools.', '--output-format', 'stream-json', '--verbose', '--allowedTools', allowed];
  const events = (await host(...words)).trim().split('\n').map((line) => JSON.parse(line));
  const { tools } = events.find((event) => event.type === 'system' && event.subtype === 'init');
  for (const { tool } of calls) assert.ok(tools.includes(tool), `${tool} in ${tools}`);
  console.log('ok      it_lists_the_tools');

  assert.equal(results.length, calls.length, JSON.stringify(events.at(-1)));
  for (const result of results) assert.match(result, /Long running operation completed/);
  console.log('ok      a_slow_call_returns_its_result');
} finally {
  gateway.kill('SIGTERM');
  await new Promise((resolve) => gateway.once('close', resolve));
}
model.close();
clearTimeout(limit);
process.exit(0);
