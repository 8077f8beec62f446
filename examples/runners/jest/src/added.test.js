const { passesWithout } = require('./planted');

test('gives a discount', () => passesWithout('new'));
