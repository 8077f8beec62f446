import assert from 'node:assert';
import { describe, it, test } from 'node:test';

describe('orders', () => {
  describe('totals', () => {
    it('adds up', () => assert.equal(2 * 625, 1250));
    it('keeps the discount', () => assert.deepEqual({ sku: 'A1', cents: 1250 }, { sku: 'A1', cents: 1350 }));
  });
  it('is skipped', { skip: 'no printer' }, () => {});
  it('is skipped without a reason', { skip: true }, () => {});
  it('is still to be done', { todo: 'SHOP-99' }, () => assert.equal(1, 2));
  it('never ends', { timeout: 100 }, () => new Promise((done) => { setTimeout(done, 3000); }));
  it('routes # /a/b?x=1 ünï ✓ <b>&', () => {});
  it('throws a text', () => { throw 'connect ECONNREFUSED 127.0.0.1:9'; });
});
test('adds up', () => {});
test('with subtests', async (t) => {
  await t.test('first', () => {});
  await t.test('second', () => { throw new Error('second subtest'); });
});
