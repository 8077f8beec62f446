import { test } from '@playwright/test';
import { diesWith, passesWithout } from './planted';

test.describe('orders', () => {
  test('pays', () => {});
  test('sends', () => passesWithout('flaky-3', 'chromium'));
  test('ships', () => passesWithout('broken', 'chromium'));
  test('returns', () => {
    diesWith('killed');
    diesWith('process-killed');
  });
});
