// A V1 server on the TypeScript SDK for our client to drive: `stdio`, or `http`, which prints its
// URL.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CreateMessageResultSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';

const text = (text, more = {}) => ({ content: [{ type: 'text', text }], ...more });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const prompt = { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 10 };
const form = {
  mode: 'form',
  message: 'Who?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};

function server() {
  const server = new McpServer({ name: 'typescript', version: '1' }, {
    capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue(),
  });

  // A tool that can be a task, and in one case must be.
  function tool(name, work, taskSupport = 'optional') {
    server.experimental.tasks.registerToolTask(name, { description: name, execution: { taskSupport } }, {
      async createTask({ taskStore, taskRequestedTtl, sendRequest }) {
        const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 200 });
        const id = task.taskId;
        const say = (status) => taskStore.updateTaskStatus(id, 'working', status);
        const ask = async (method, params, schema) => {
          const answer = await sendRequest({ method, params }, schema, { relatedTask: { taskId: id } });
          await say('answered');
          return answer;
        };
        work({ say, ask }).then(
          (result) => taskStore.storeTaskResult(id, result.isError ? 'failed' : 'completed', result),
          (error) => taskStore.updateTaskStatus(id, 'failed', error.message),
        ).catch(() => {}); // Cancelled in the meantime.
        return { task };
      },
      getTask: ({ taskId, taskStore }) => taskStore.getTask(taskId),
      getTaskResult: ({ taskId, taskStore }) => taskStore.getTaskResult(taskId),
    });
  }

  tool('slow', async ({ say }) => {
    await say('warming up');
    await pause(500);
    return text('done');
  });
  tool('long', () => pause(3_000).then(() => text('done')));
  tool('must', async () => text('done as a task'), 'required');
  tool('fail', async () => text('it broke', { isError: true }));
  tool('crash', async () => {
    throw new Error('it crashed');
  });
  tool('endless', () => pause(600_000).then(() => text('never')));
  tool('ask', async ({ ask }) => {
    const { action, content } = await ask('elicitation/create', form, ElicitResultSchema);
    return text(`${action} ${content?.name}`);
  });
  tool('sample', async ({ ask }) => {
    const { content } = await ask('sampling/createMessage', prompt, CreateMessageResultSchema);
    return text(`the model said ${content.text}`);
  });
  // Creates tasks at the client.
  server.registerTool('host', { description: 'host' }, async (extra) => {
    const { tasks } = server.server.experimental;
    const options = { task: { ttl: 60_000 }, relatedRequestId: extra.requestId };
    const sampled = await last(tasks.createMessageStream(prompt, options));
    const met = await last(tasks.elicitInputStream(form, options));
    return text(`${sampled.content.text}, ${met.content.name}`);
  });
  return server;
}

/** The result at the end of a stream that begins with a task. */
async function last(stream) {
  let made;
  for await (const message of stream) {
    if (message.type === 'taskCreated') made = message.task.taskId;
    if (message.type === 'error') throw message.error;
    if (message.type === 'result') {
      if (!made) throw new Error('the client made no task');
      return message.result;
    }
  }
  throw new Error('the stream has no result');
}

const sessions = new Map();

async function transport(session) {
  const known = sessions.get(session);
  if (known) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server().connect(transport);
  return transport;
}

if (process.argv[2] === 'http') {
  const http = createServer(async (request, response) => {
    const found = await transport(request.headers['mcp-session-id']);
    await found.handleRequest(request, response);
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
} else {
  await server().connect(new StdioServerTransport());
}
