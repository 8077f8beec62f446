"""The tools over HTTP and over standard input and output, with the Python SDK."""

import asyncio
import os
from urllib.parse import urlsplit

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

URL, KEY = os.environ["MCP_URL"], os.environ["ASSAY_KEY"]


async def show(transport) -> None:
    async with Client(transport) as client:
        print(*(tool.name for tool in (await client.list_tools()).tools))
        runs = await client.call_tool("list_runs", {"project": "storefront", "status": "failed", "limit": 1})
        run = runs.structured_content["runs"][0]["run"]
        answer = await client.call_tool("explain_failures", {"project": "storefront", "run": run})
        print(answer.content[0].text)
        wrong = await client.call_tool("explain_failures", {"project": "storefront"})
        print(str(wrong.is_error).lower(), wrong.content[0].text)


async def main() -> None:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
        await show(streamable_http_client(URL, http_client=http))
    address = urlsplit(URL)
    environment = {"ASSAY_URL": f"{address.scheme}://{address.netloc}", "ASSAY_READ_KEY": KEY}
    await show(stdio_client(StdioServerParameters(command=os.environ["ASSAY"], args=["mcp"], env=environment)))


asyncio.run(main())
