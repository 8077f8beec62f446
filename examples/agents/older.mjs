// The tools over HTTP and over standard input and output, with the older SDK, which opens with a handshake.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { show } from "./show.mjs";

const { MCP_URL, ASSAY_KEY, ASSAY } = process.env;
const headers = { Authorization: `Bearer ${ASSAY_KEY}` };
const env = { ASSAY_URL: new URL(MCP_URL).origin, ASSAY_READ_KEY: ASSAY_KEY };
const transports = [
  new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers } }),
  new StdioClientTransport({ command: ASSAY, args: ["mcp"], env }),
];
for (const transport of transports) {
  const client = new Client({ name: "check", version: "1" });
  await client.connect(transport);
  await show(() => client.listTools(), (name, args) => client.callTool({ name, arguments: args }));
  await client.close();
}
