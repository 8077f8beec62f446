const { expect, test: base } = require("@playwright/test");

const planted = process.env.PLANTED;
const isFlaky = planted === "flaky" || planted === "outside";

const tearDown = async ({}, use) => {
  await use();
  expect(planted).not.toBe("outside");
};
const test = base.extend({ outside: [tearDown, { scope: "worker", auto: true }] });

// With --repeat-each, rows of one name.
test("adds", ({}, info) => expect(planted).not.toBe(["first-row", "last-row"][info.repeatEachIndex]));
test("sends", ({}, info) => expect(!isFlaky || info.retry).toBeTruthy());
test("pays", () => expect(planted).not.toBe("broken"));
test("ships", () => {});
test("returns", () => {});
