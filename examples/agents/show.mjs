// Lists the tools, explains the failures of the newest failed run, and makes a wrong call.
export async function show(tools, call) {
  console.log((await tools()).tools.map((tool) => tool.name).join(" "));
  const runs = await call("list_runs", { project: "storefront", status: "failed", limit: 1 });
  const answer = await call("explain_failures", { project: "storefront", run: runs.structuredContent.runs[0].run });
  console.log(answer.content[0].text);
  const wrong = await call("explain_failures", { project: "storefront" });
  console.log(wrong.isError, wrong.content[0].text);
}
