test("ships", () => {});
