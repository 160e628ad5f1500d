"""The Python SDK as a legacy client with elicitation: elicit_client.py URL calls `ask_directly` and answers it."""

import asyncio
import sys

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

asked = []


async def answer(context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"value": "Ada"})


async def main():
    async with streamablehttp_client(sys.argv[1]) as (read, write, _):
        async with ClientSession(read, write, elicitation_callback=answer) as session:
            await session.initialize()
            result = await asyncio.wait_for(session.call_tool("ask_directly", {}), 60)
            assert not result.isError, result
            assert result.content[0].text == "accept Ada", result
            assert asked == ["Who?"], asked
    print("ok      a tool that elicits while it runs")


asyncio.run(main())
