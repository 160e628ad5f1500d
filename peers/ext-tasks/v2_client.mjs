// The requester of ext-tasks as a client of our V2 server: node v2_client.mjs URL
import assert from 'node:assert/strict';
import { createApplicationInputHandler, withTasks } from '@modelcontextprotocol/ext-tasks/client';

const [url] = process.argv.slice(2);
const version = '2026-07-28';
const extension = 'io.modelcontextprotocol/tasks';
const capabilities = { elicitation: {}, sampling: {}, extensions: { [extension]: {} } };
let next = 0;

// One POST per request, with the metadata and the headers of the revision.
async function dispatch(request, { signal } = {}) {
  const { method, params = {} } = request;
  const meta = {
    ...params._meta,
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'ext-tasks-peer', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const name = params.name ?? params.taskId;
  const response = await fetch(url, {
    method: 'POST',
    signal,
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(name === undefined ? {} : { 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: (next += 1), method, params: { ...params, _meta: meta } }),
  });
  const text = await response.text();
  const streams = response.headers.get('content-type').startsWith('text/event-stream');
  const lines = streams ? text.split('\n').filter((line) => line.startsWith('data: ')) : [text];
  const { result, error } = JSON.parse(lines.at(-1).replace(/^data: /, ''));
  return error === undefined ? { kind: 'result', result } : { kind: 'error', error };
}

async function session(onInputRequest) {
  const found = await dispatch({ method: 'server/discover' });
  const declared = found.result.capabilities.extensions[extension];
  assert.deepEqual(declared, {});
  const none = () => () => {};
  const port = {
    endpointId: url,
    taskCapabilities: { generation: 'v2', capabilities: declared },
    dispatch,
    onServerRequest: none,
    onNotification: none,
    onInvalidated: none,
    invalidated: false,
  };
  return withTasks(port, { onInputRequest });
}

const tests = {
  async 'a tool runs as a task from creation to result'() {
    const tasks = await session();
    const execution = await tasks.callTool('long_running_task', { duration: 0.3 });
    assert.equal(execution.kind, 'task');
    const { outcome } = await execution.settle();
    assert.equal(outcome.status, 'completed');
    assert.equal(outcome.result.content[0].text, 'Completed after 0.3s');
    await tasks.close();
  },

  async 'a task asks a person and a model, and goes on with their answers'() {
    const asked = [];
    const handler = createApplicationInputHandler({
      elicitation: () => {
        asked.push('elicitation');
        return { action: 'accept', content: { confirm: true } };
      },
      sampling: () => {
        asked.push('sampling');
        return { role: 'assistant', model: 'none', content: { type: 'text', text: 'A line.' } };
      },
      roots: () => assert.fail('no tool requests roots'),
    });
    const tasks = await session(handler);
    const execution = await tasks.callTool('confirm_and_sample', { topic: 'rust' });
    const { outcome } = await execution.settle();
    assert.equal(outcome.status, 'completed', JSON.stringify(outcome));
    assert.deepEqual(asked, ['elicitation', 'sampling']);
    await tasks.close();
  },

  async 'a task is cancelled'() {
    const tasks = await session();
    const execution = await tasks.callTool('long_running_task', { duration: 60 });
    await execution.cancel();
    const outcome = await execution.result();
    assert.equal(outcome.status, 'cancelled', JSON.stringify(outcome));
    await tasks.close();
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`ok ${name}`);
}
