const { passesWithout } = require('./planted');

describe('it\'s a "cart" [1] > (ü)', () => {
  describe('empty', () => {
    test('costs $0 + 1 > 0', () => passesWithout('flaky-1'));
    test('costs $0 + 1 > 0.5', () => {});
  });
  test.each([['a b', 1], ['a b', 11]])('has %s | %i', (_, count) => {
    if (count === 1) passesWithout('flaky-2');
  });
});

test('pays', () => {});
test('pays twice', () => passesWithout('breakage'));
