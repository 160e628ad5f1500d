"""FastMCP 4 with its tasks extension as a client of our V2 server: v2_client.py URL, or COMMAND ARGS...

It only polls: FastMCP has no `subscriptions/listen` for tasks. It answers only elicitation inside a task; a question
for a model ends its side of the call (`a_question_for_a_model_is_beyond_it`).
"""

import asyncio
import sys
import traceback

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp_tasks.client import call_tool_task


def client(**handlers):
    target = sys.argv[1]
    if not target.startswith("http"):
        # Without `keep_alive` the server ends with its client.
        target = StdioTransport(command=target, args=sys.argv[2:], keep_alive=False)
    # It detects the era itself, and has tasks only in the modern one.
    return Client(target, mode="auto", timeout=20, **handlers)


async def a_task_from_creation_to_result():
    async with client() as peer:
        task = await call_tool_task(peer, "long_running_task", {"duration": 0.3})
        assert task.create_result.status == "working", task.create_result
        assert task.create_result.ttl_ms is not None, task.create_result
        last = await task.wait(timeout=20)
        assert (last.task_id, last.status) == (task.task_id, "completed"), last
        result = await task.result()
        assert result.content[0].text == "Completed after 0.3s", result


async def a_call_whose_caller_does_not_know_that_it_is_a_task():
    async with client() as peer:
        result = await peer.call_tool("long_running_task", {"duration": 0.1})
        assert result.content[0].text == "Completed after 0.1s", result


async def a_call_that_outlasts_its_grace_is_promoted():
    async with client() as peer:
        task = await call_tool_task(peer, "LongRunningAnalysis", {"data": "rain", "durationSeconds": 1})
        result = await task
        assert result.content[0].text == "Analysis complete for: rain", result


async def a_quick_call_is_no_task():
    async with client() as peer:
        result = await peer.call_tool("LongRunningAnalysis", {"data": "x", "durationSeconds": 0})
        assert result.content[0].text == "Analysis complete for: x", result
        try:
            await call_tool_task(peer, "LongRunningAnalysis", {"data": "x", "durationSeconds": 0})
        except ToolError as error:
            assert "did not run as a task" in str(error), error
        else:
            raise AssertionError("a task was not expected")


async def two_tasks_side_by_side_one_of_them_cancelled():
    async with client() as peer:
        endless = await call_tool_task(peer, "long_running_task", {"duration": 600})
        short = await call_tool_task(peer, "long_running_task", {"duration": 0.2})
        assert (await endless.status()).status == "working"
        await endless.cancel()
        assert (await endless.wait(timeout=20)).status == "cancelled"
        assert (await short).content[0].text == "Completed after 0.2s"
        # A second cancellation is not an error and changes nothing.
        await endless.cancel()
        try:
            await endless
        except ToolError as error:
            assert "was cancelled" in str(error), error
        else:
            raise AssertionError("a cancelled task has no result")


async def a_tool_that_fails_says_why():
    async with client() as peer:
        result = await peer.call_tool("failing", {}, raise_on_error=False)
        assert result.is_error and result.content[0].text == "it broke on purpose", result


async def a_person_answers_inside_a_task():
    asked = []

    async def decline(message, response_type, params, context):
        asked.append(message)
        return ElicitResult(action="decline")

    async with client(elicitation_handler=decline) as peer:
        task = await call_tool_task(peer, "confirm_and_sample", {"topic": "tides"})
        parked = await task.wait(state="input_required", timeout=20)
        (question,) = parked.input_requests.values()
        assert question["method"] == "elicitation/create", question
        result = await task.result()
        assert result.content[0].text == "Nothing was written.", result
        assert asked == ["Write about tides?"], asked


async def a_question_for_a_model_is_beyond_it():
    async def confirm(message, response_type, params, context):
        return ElicitResult(action="accept", content=response_type(confirm=True))

    async def sample(messages, params, context):
        raise AssertionError("FastMCP does not send the input request")

    # Its capabilities declare the supported input requests. Without a model the tool gets an error.
    async with client(elicitation_handler=confirm) as peer:
        result = await peer.call_tool("confirm_and_sample", {"topic": "tides"}, raise_on_error=False)
        assert result.is_error and "sampling" in result.content[0].text, result
    # With a model it gets the request, and FastMCP gives up: the task stays, and its owner can
    # still cancel it.
    async with client(elicitation_handler=confirm, sampling_handler=sample) as peer:
        task = await call_tool_task(peer, "confirm_and_sample", {"topic": "tides"})
        try:
            await task.result()
        except ToolError as error:
            assert "sampling/createMessage" in str(error), error
        else:
            raise AssertionError("FastMCP was not expected to answer")
        assert (await task.status()).status == "input_required"
        await task.cancel()
        assert (await task.wait(timeout=20)).status == "cancelled"


async def main():
    tests = [
        a_task_from_creation_to_result,
        a_call_whose_caller_does_not_know_that_it_is_a_task,
        a_call_that_outlasts_its_grace_is_promoted,
        a_quick_call_is_no_task,
        two_tasks_side_by_side_one_of_them_cancelled,
        a_tool_that_fails_says_why,
        a_person_answers_inside_a_task,
        a_question_for_a_model_is_beyond_it,
    ]
    failed = 0
    for test in tests:
        try:
            await asyncio.wait_for(test(), 30)
            print(f"ok      {test.__name__}")
        except BaseException:
            failed += 1
            print(f"FAILED  {test.__name__}")
            traceback.print_exc()
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


asyncio.run(main())
