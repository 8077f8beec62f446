const addContext = require('mochawesome/addContext');

describe('cart', function () {
  afterEach(function () {
    if (this.currentTest.state === 'failed') {
      addContext(this, { title: 'screenshot', value: 'shots/cart-pays.png' });
      addContext(this, 'shots/page.png');
      addContext(this, 'https://files.test/videos/cart.mp4');
      addContext(this, { title: 'basket', value: { items: 3 } });
    }
  });
  it('pays', function () {
    throw new Error('expected 3 items, got 4');
  });
  it('adds', function () {});
});
