// Pages through everything that a read key sees, with a client whose types are generated from docs/openapi.json.
//
//   npm install && npm run generate && npm run build
//   ASSAY_KEY=svc_ro_… npm start

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Failure = components["schemas"]["ErrorBody"];

const key = process.env.ASSAY_KEY;
if (!key) throw new Error("set ASSAY_KEY to a read key");
const client = createClient<paths>({
  baseUrl: process.env.ASSAY_URL ?? "http://127.0.0.1:8080/api/v1",
  headers: { Authorization: `Bearer ${key}` },
});

/** The answer's data, or an error that says which code the server gave. */
function unwrap<T>(answer: { data?: T | undefined; error?: Failure | undefined; response: Response }): T {
  if (answer.data !== undefined) return answer.data;
  throw new Error(`${answer.response.status}: ${answer.error?.code ?? "no body"}`);
}

const { projects } = unwrap(await client.GET("/projects"));
for (const project of projects) {
  const path = { projectId: project.id };

  // The runs list pages by cursor: it stays complete while newer runs arrive.
  let runs = 0;
  let cursor: string | undefined;
  do {
    const query = { perPage: 10 as const, ...(cursor ? { cursor } : {}) };
    const page = unwrap(await client.GET("/projects/{projectId}/runs", { params: { path, query } }));
    runs += page.runs.length;
    cursor = page.nextCursor ?? undefined;
    if (!cursor && runs !== page.total) throw new Error(`${runs} of ${page.total} runs`);
  } while (cursor);

  // The flaky list is judged whole at each call, so it pages by number.
  const flaky: string[] = [];
  for (let number = 1, last = 1; number <= last; number++) {
    const query = { perPage: 10 as const, page: number };
    const page = unwrap(await client.GET("/projects/{projectId}/flaky", { params: { path, query } }));
    last = page.page.pageCount;
    flaky.push(...page.tests.map((test) => `${test.status}: ${test.testName} (${test.explanation})`));
  }
  console.log(`${project.name}: ${runs} runs, ${flaky.length} flaky or broken tests`);
  for (const line of flaky) console.log(`  ${line}`);
}
