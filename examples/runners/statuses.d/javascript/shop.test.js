// For Jest, Vitest and Mocha.
const assert = require("node:assert");

const planted = process.env.PLANTED;
const isFlaky = planted === "flaky" || planted === "outside";
let attempts = 0;

if (typeof jest !== "undefined" && isFlaky) {
  jest.retryTimes(1);
}

describe("shop", () => {
  for (const row of ["first-row", "last-row"]) {
    it("adds", () => assert.notEqual(planted, row));
  }
  it("sends", () => {
    attempts += 1;
    assert.ok(!isFlaky || attempts > 1);
  });
  it("pays", () => assert.notEqual(planted, "broken"));
  it("ships", () => {});
  it("returns", () => {});
  (typeof after === "undefined" ? afterAll : after)(() => assert.notEqual(planted, "outside"));
});
