const { expect, test } = require("@playwright/test");

const planted = process.env.PLANTED;

// With --repeat-each, rows of one name.
test("adds", ({}, info) => expect(planted).not.toBe(["first-row", "last-row"][info.repeatEachIndex]));
test("sends", ({}, info) => expect(planted !== "flaky" || info.retry).toBeTruthy());
test("pays", () => expect(planted).not.toBe("broken"));
test("ships", () => {});
test("returns", () => {});
