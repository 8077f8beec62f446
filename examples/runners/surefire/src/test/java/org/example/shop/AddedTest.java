package org.example.shop;

import static org.example.shop.Planted.fails;

import org.junit.jupiter.api.Test;

class AddedTest {
  @Test
  void givesADiscount() {
    fails("new");
  }
}
