"""A V2 server on FastMCP 4 with its tasks extension, for our client to drive: `stdio`, or `http`, which prints its URL."""

import asyncio
import socket
import sys
from datetime import timedelta

import mcp_types
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

mcp = FastMCP("fastmcp4")
mcp.add_extension(TasksExtension(url="memory://"))

OPTIONAL = TaskConfig(poll_interval=timedelta(milliseconds=200))
REQUIRED = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=200))


@mcp.tool(task=OPTIONAL)
async def slow() -> str:
    await asyncio.sleep(0.5)
    return "done"


@mcp.tool(task=REQUIRED)
async def must() -> str:
    return "done as a task"


@mcp.tool(task=OPTIONAL)
async def fail() -> str:
    raise ToolError("it broke")


@mcp.tool(task=OPTIONAL)
async def crash() -> str:
    raise RuntimeError("it crashed")


@mcp.tool(task=OPTIONAL)
async def endless() -> str:
    await asyncio.sleep(600)
    return "never"


@mcp.tool(task=OPTIONAL)
async def ask(ctx: Context) -> str | mcp_types.InputRequiredResult:
    answers = ctx.input_responses
    if not answers:
        schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
        form = mcp_types.ElicitRequestFormParams(message="Who?", requestedSchema=schema)
        return mcp_types.InputRequiredResult(inputRequests={"who": mcp_types.ElicitRequest(params=form)})
    met = answers["who"]
    return f"{met.action} {met.content['value']}"


@mcp.tool
async def ask_directly(ctx: Context) -> str:
    """Sends its input request while it runs, which only the legacy era has."""
    answer = await ctx.elicit("Who?", response_type=str)
    return f"{answer.action} {answer.data}"


async def over_http():
    app = mcp.http_app(path="/mcp")
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


if sys.argv[1] == "http":
    asyncio.run(over_http())
else:
    mcp.run(show_banner=False)
