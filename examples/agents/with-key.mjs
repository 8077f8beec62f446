// Passes requests on to MCP_URL with the read key, for programs that cannot send one.
import http from "node:http";

const target = new URL(process.env.MCP_URL);
const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${process.env.ASSAY_KEY}` };
  const { hostname: host, port, pathname: path } = target;
  const onward = http.request({ host, port, path, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});
server.listen(Number(process.env.PROXY_PORT), "127.0.0.1");
