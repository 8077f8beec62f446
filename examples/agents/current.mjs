// The tools over HTTP and over standard input and output, with the current client of the protocol.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { show } from "./show.mjs";

const { MCP_URL, ASSAY_KEY, ASSAY, SSL_CERT_FILE } = process.env;
const headers = { Authorization: `Bearer ${ASSAY_KEY}` };
const env = { ASSAY_URL: new URL(MCP_URL).origin, ASSAY_READ_KEY: ASSAY_KEY, ...(SSL_CERT_FILE && { SSL_CERT_FILE }) };
const transports = [
  new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers } }),
  new StdioClientTransport({ command: ASSAY, args: ["mcp"], env }),
];
for (const transport of transports) {
  const client = new Client({ name: "check", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(transport);
  await show(() => client.listTools(), (name, args) => client.callTool({ name, arguments: args }));
  await client.close();
}
