// For Jest, Vitest and Mocha.
const assert = require("node:assert");

const planted = process.env.PLANTED;
let attempts = 0;

if (typeof jest !== "undefined" && planted === "flaky") {
  jest.retryTimes(1);
}

describe("shop", () => {
  for (const row of ["first-row", "last-row"]) {
    it("adds", () => assert.notEqual(planted, row));
  }
  it("sends", () => {
    attempts += 1;
    assert.ok(planted !== "flaky" || attempts > 1);
  });
  it("pays", () => assert.notEqual(planted, "broken"));
  it("ships", () => {});
  it("returns", () => {});
});
