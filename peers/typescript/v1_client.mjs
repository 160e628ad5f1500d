// The TypeScript SDK as a client of our V1 server: node v1_client.mjs URL, or COMMAND ARGS...
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const [command, ...args] = process.argv.slice(2);
const related = 'io.modelcontextprotocol/related-task';

async function connect() {
  const client = new Client(
    { name: 'typescript-peer', version: '1.0.0' },
    { capabilities: { elicitation: {}, sampling: {} } },
  );
  client.asked = [];
  client.setRequestHandler(ElicitRequestSchema, async (request) => {
    client.asked.push(request.params._meta?.[related]?.taskId ?? null);
    return { action: 'accept', content: { confirm: true } };
  });
  client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
    client.asked.push(request.params._meta?.[related]?.taskId ?? null);
    const said = request.params.messages[0].content.text;
    return { role: 'assistant', model: 'none', content: { type: 'text', text: `A line about ${said}.` } };
  });
  await client.connect(command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, stderr: 'inherit' }));
  return client;
}

async function stream(client, name, parameters, options = {}) {
  const messages = [];
  const call = client.experimental.tasks.callToolStream(
    { name, arguments: parameters },
    CallToolResultSchema,
    { task: { ttl: 60_000 }, ...options },
  );
  for await (const message of call) messages.push(message);
  return messages;
}

const tests = {
  async 'a tool runs as a task from creation to result'() {
    const client = await connect();
    await client.listTools();
    const messages = await stream(client, 'long_running_task', { duration: 0.3 });
    assert.equal(messages[0].type, 'taskCreated');
    assert.equal(messages[0].task.status, 'working');
    const last = messages.at(-1);
    assert.equal(last.type, 'result', JSON.stringify(last));
    assert.equal(last.result.content[0].text, 'Completed after 0.3s');
    assert.equal(last.result._meta[related].taskId, messages[0].task.taskId);
    await client.close();
  },

  async 'a plain call of an optional tool is answered directly'() {
    const client = await connect();
    const result = await client.callTool({ name: 'LongRunningAnalysis', arguments: { data: 'x', durationSeconds: 0 } });
    assert.equal(result.content[0].text, 'Analysis complete for: x');
    await client.close();
  },

  async 'questions inside a task are asked and answered'() {
    const client = await connect();
    await client.listTools();
    const messages = await stream(client, 'confirm_and_sample', { topic: 'tides' });
    const last = messages.at(-1);
    assert.equal(last.type, 'result', JSON.stringify(last));
    assert.equal(last.result.content[0].text, 'A line about tides.');
    const task = messages[0].task.taskId;
    assert.deepEqual(client.asked, [task, task]);
    await client.close();
  },

  async 'questions inside a plain call are asked and answered'() {
    const client = await connect();
    const result = await client.callTool({ name: 'confirm_and_sample', arguments: { topic: 'tides' } });
    assert.equal(result.content[0].text, 'A line about tides.');
    assert.deepEqual(client.asked, [null, null]);
    await client.close();
  },

  async 'get, list, result and cancel work as calls of their own'() {
    const client = await connect();
    await client.listTools();
    const tasks = client.experimental.tasks;
    const call = tasks.callToolStream(
      { name: 'long_running_task', arguments: { duration: 30 } }, CallToolResultSchema, { task: { ttl: 60_000 } });
    const { value: created } = await call.next();
    const id = created.task.taskId;
    assert.equal((await tasks.getTask(id)).status, 'working');
    assert.ok((await tasks.listTasks()).tasks.some((task) => task.taskId === id));
    const waiting = tasks.getTaskResult(id, CallToolResultSchema).then(() => null, (error) => error);
    assert.equal((await tasks.cancelTask(id)).status, 'cancelled');
    assert.equal((await waiting).code, -32603);
    await assert.rejects(tasks.cancelTask(id), (error) => error.code === -32602);
    await assert.rejects(tasks.getTask('nonsense'), (error) => error.code === -32602);
    await client.close();
  },

  async 'a failed task keeps its result'() {
    const client = await connect();
    await client.listTools();
    const messages = await stream(client, 'failing', {});
    const id = messages[0].task.taskId;
    const task = await client.experimental.tasks.getTask(id);
    assert.equal(task.status, 'failed');
    assert.equal(task.statusMessage, 'it broke on purpose');
    const result = await client.experimental.tasks.getTaskResult(id, CallToolResultSchema);
    assert.equal(result.isError, true);
    await client.close();
  },

  async 'progress keeps coming after the task was created'() {
    const client = await connect();
    await client.listTools();
    const seen = [];
    const messages = await stream(client, 'long_running_task', { duration: 0.5 }, {
      onprogress: (progress) => seen.push(progress.progress),
    });
    assert.equal(messages.at(-1).type, 'result');
    assert.ok(seen.length >= 5, `${seen}`);
    assert.deepEqual(seen, [...seen].sort((a, b) => a - b));
    await client.close();
  },

  async 'two clients at once do not disturb each other'() {
    const clients = [await connect(), await connect()];
    await Promise.all(clients.map(async (client, n) => {
      await client.listTools();
      const messages = await stream(client, 'LongRunningAnalysis', { data: `${n}`, durationSeconds: 1 });
      assert.equal(messages.at(-1).result.content[0].text, `Analysis complete for: ${n}`);
      await client.close();
    }));
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await Promise.race([
      test(),
      new Promise((_, reject) => setTimeout(() => reject(new Error('no end within 30 s')), 30_000).unref()),
    ]);
    console.log(`ok      ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
  }
}
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
