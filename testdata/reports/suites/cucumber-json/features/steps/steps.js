const assert = require('node:assert');
const { After, Given, Then, When } = require('@cucumber/cucumber');

let calls = 0;
const prices = { A1: 625, B2: 2 };

Given('a basket', function () { this.total = 0; });
When('two cups are ordered', function () { this.total = 2 * 625; });
Then('the total is {int}', function (cents) { assert.strictEqual(this.total, cents); });
When('the service answers on the second try', () => {
  calls += 1;
  if (calls < 2) throw new Error('connect ECONNREFUSED 127.0.0.1:9');
});
When('the printer is attached', () => 'pending');
When('the test skips itself', () => 'skipped');
When('the service never answers', { timeout: 200 }, () => new Promise(() => {}));
Then('the price of {string} is {int}', (sku, cents) => { assert.strictEqual(prices[sku], cents); });
After('@broken-after', () => { throw new Error('the printer is on fire'); });
