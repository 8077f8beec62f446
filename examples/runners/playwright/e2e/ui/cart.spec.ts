import { test } from '@playwright/test';
import { passesWithout } from '../planted';

test.describe('it\'s a "cart" [1] > (ü)', () => {
  test.describe('empty', () => {
    test('costs $0 + 1 > 0', () => passesWithout('flaky-1', 'chromium'));
    test('costs $0 + 1 > 0.5', () => {});
  });
  for (const count of [1, 11]) {
    test(`has a b | ${count}`, { tag: '@slow' }, () => {
      if (count === 1) passesWithout('flaky-2', 'Mobile Chrome');
    });
  }
});

test('pays', () => {});
test('pays twice', () => passesWithout('breakage', 'chromium'));
