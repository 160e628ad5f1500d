"""A V1 server on the Python SDK for our client to drive: `stdio`, or `http`, which prints its URL."""

import asyncio
import socket
import sys
import warnings
from contextlib import asynccontextmanager

import mcp.types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PROMPT = [types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))]

warnings.simplefilter("ignore", DeprecationWarning)
server = Server("python")
server.experimental.enable_tasks()


def text(said: str, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)], isError=is_error)


async def slow(task):
    await task.update_status("warming up")
    await asyncio.sleep(0.5)
    return text("done")


async def long(task):
    await asyncio.sleep(3)
    return text("done")


async def must(task):
    return text("done as a task")


async def fail(task):
    return text("it broke", is_error=True)


async def crash(task):
    raise RuntimeError("it crashed")


async def endless(task):
    await asyncio.sleep(600)
    return text("never")


async def ask(task):
    met = await task.elicit(message="Who?", requestedSchema=FORM)
    return text(f"{met.action} {met.content['name']}")


async def sample(task):
    said = await task.create_message(messages=PROMPT, max_tokens=10)
    return text(f"the model said {said.content.text}")


async def host(session):
    """Creates tasks at the client."""
    tasks = session.experimental
    said = await tasks.create_message_as_task(messages=PROMPT, max_tokens=10)
    met = await tasks.elicit_as_task(message="Who?", requestedSchema=FORM)
    return text(f"{said.content.text}, {met.content['name']}")


TASKS = {work.__name__: work for work in (slow, long, must, fail, crash, endless, ask, sample)}


@server.list_tools()
async def list_tools():
    support = {name: "required" if name == "must" else "optional" for name in TASKS}
    support["host"] = "forbidden"
    return [
        types.Tool(
            name=name, inputSchema={"type": "object"}, execution=types.ToolExecution(taskSupport=how)
        )
        for name, how in support.items()
    ]


@server.call_tool()
async def call_tool(name, arguments):
    context = server.request_context
    if name == "host":
        return await host(context.session)
    context.experimental.validate_task_mode("required")
    return await context.experimental.run_task(TASKS[name])


async def over_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def over_http():
    sessions = StreamableHTTPSessionManager(app=server)

    @asynccontextmanager
    async def lifespan(_):
        async with sessions.run():
            yield

    async def handle(scope, receive, send):
        await sessions.handle_request(scope, receive, send)

    app = Starlette(routes=[Mount("/mcp", app=handle)], lifespan=lifespan)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp/", flush=True)
    config = uvicorn.Config(app, log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(over_http() if sys.argv[1] == "http" else over_stdio())
