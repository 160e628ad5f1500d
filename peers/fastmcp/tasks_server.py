"""A V1 server on FastMCP 3 for our client to drive: `stdio`, or `http`, which prints its URL."""

import asyncio
import os
import socket
import sys

# Twenty tasks run at the same time, as they do in the other servers.
os.environ["FASTMCP_DOCKET_CONCURRENCY"] = "20"

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.tasks import TaskConfig

mcp = FastMCP("fastmcp")


@mcp.tool(task=True)
async def slow() -> str:
    await asyncio.sleep(0.5)
    return "done"


@mcp.tool(task=True)
async def long() -> str:
    await asyncio.sleep(3)
    return "done"


@mcp.tool(task=TaskConfig(mode="required"))
async def must() -> str:
    return "done as a task"


@mcp.tool(task=True)
async def fail() -> str:
    raise ToolError("it broke")


@mcp.tool(task=True)
async def crash() -> str:
    raise RuntimeError("it crashed")


@mcp.tool(task=True)
async def endless() -> str:
    await asyncio.sleep(600)
    return "never"


@mcp.tool(task=True)
async def ask(ctx: Context) -> str:
    met = await ctx.elicit("Who?", response_type=str)
    return f"{met.action} {met.data}"


async def over_http():
    app = mcp.http_app(path="/mcp")
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


if sys.argv[1] == "http":
    asyncio.run(over_http())
else:
    mcp.run(show_banner=False)
