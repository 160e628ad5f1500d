"""The Python SDK as a client of our V1 server: v1_client.py URL, or COMMAND ARGS..."""

import asyncio
import sys
import traceback
import warnings
from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

warnings.simplefilter("ignore", DeprecationWarning)

RELATED = "io.modelcontextprotocol/related-task"


class Peer:
    """A connection, and the input requests that it received."""

    def __init__(self):
        self.asked = []

    async def elicit(self, context, params):
        self.note(params)
        return types.ElicitResult(action="accept", content={"confirm": True})

    async def sample(self, context, params):
        self.note(params)
        said = params.messages[0].content.text
        content = types.TextContent(type="text", text=f"A line about {said}.")
        return types.CreateMessageResult(role="assistant", model="none", content=content)

    def note(self, params):
        meta = params.meta.model_dump(by_alias=True) if params.meta else {}
        self.asked.append(meta.get(RELATED, {}).get("taskId"))


@asynccontextmanager
async def connected():
    if sys.argv[1].startswith("http"):
        async with streamablehttp_client(sys.argv[1]) as (read, write, _):
            yield read, write
    else:
        server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
        async with stdio_client(server) as (read, write):
            yield read, write


async def with_session(test):
    peer = Peer()
    async with connected() as (read, write):
        callbacks = {"elicitation_callback": peer.elicit, "sampling_callback": peer.sample}
        async with ClientSession(read, write, **callbacks) as session:
            await session.initialize()
            await session.list_tools()
            await test(session, peer)
            # The SDK fails when a message arrives while it closes.
            await asyncio.sleep(0.2)


async def a_task_from_creation_to_result(session, peer):
    created = await session.experimental.call_tool_as_task("long_running_task", {"duration": 0.3})
    assert created.task.status == "working", created
    assert created.task.ttl == 60000, created
    async for status in session.experimental.poll_task(created.task.taskId):
        last = status
    assert last.status == "completed", last
    result = await session.experimental.get_task_result(created.task.taskId, types.CallToolResult)
    assert result.content[0].text == "Completed after 0.3s", result
    assert result.meta[RELATED]["taskId"] == created.task.taskId, result


async def questions_inside_a_task(session, peer):
    created = await session.experimental.call_tool_as_task("confirm_and_sample", {"topic": "tides"})
    task = created.task.taskId
    result = await session.experimental.get_task_result(task, types.CallToolResult)
    assert result.content[0].text == "A line about tides.", result
    assert peer.asked == [task, task], peer.asked


async def list_cancel_and_not_found(session, peer):
    created = await session.experimental.call_tool_as_task("long_running_task", {"duration": 30})
    task = created.task.taskId
    listed = await session.experimental.list_tasks()
    assert any(found.taskId == task for found in listed.tasks), listed
    assert (await session.experimental.cancel_task(task)).status == "cancelled"
    assert (await session.experimental.get_task(task)).status == "cancelled"
    for refused, code in [
        (session.experimental.cancel_task(task), -32602),
        (session.experimental.get_task("nonsense"), -32602),
        (session.experimental.get_task_result(task, types.CallToolResult), -32603),
    ]:
        try:
            await refused
        except McpError as error:
            assert error.error.code == code, error.error
        else:
            raise AssertionError("an error was expected")


async def a_failed_task_keeps_its_result(session, peer):
    created = await session.experimental.call_tool_as_task("failing", {})
    result = await session.experimental.get_task_result(created.task.taskId, types.CallToolResult)
    assert result.isError, result
    status = await session.experimental.get_task(created.task.taskId)
    assert (status.status, status.statusMessage) == ("failed", "it broke on purpose"), status


async def a_plain_call(session, peer):
    result = await session.call_tool("LongRunningAnalysis", {"data": "x", "durationSeconds": 0})
    assert result.content[0].text == "Analysis complete for: x", result


async def main():
    tests = [
        a_task_from_creation_to_result,
        questions_inside_a_task,
        list_cancel_and_not_found,
        a_failed_task_keeps_its_result,
        a_plain_call,
    ]
    failed = 0
    for test in tests:
        try:
            await asyncio.wait_for(with_session(test), 30)
            print(f"ok      {test.__name__}")
        except BaseException:
            failed += 1
            print(f"FAILED  {test.__name__}")
            traceback.print_exc()
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


asyncio.run(main())
