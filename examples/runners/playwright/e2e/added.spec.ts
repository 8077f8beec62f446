import { test } from '@playwright/test';
import { passesWithout } from './planted';

test('gives a discount', () => passesWithout('new', 'chromium'));
