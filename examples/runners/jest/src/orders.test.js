const { diesWith, passesWithout } = require('./planted');

describe('orders', () => {
  test('pays', () => {});
  test('sends', () => passesWithout('flaky-3'));
  test('ships', () => passesWithout('broken'));
  test('returns', async () => {
    await diesWith('killed');
    await diesWith('process-killed');
  });
});
