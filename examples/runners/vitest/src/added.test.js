import { test } from 'vitest';
import { passesWithout } from './planted.js';

test('gives a discount', () => passesWithout('new'));
