package com.org.example.shop;

import org.junit.jupiter.api.Test;

/** Its name ends like that of the other class. */
class OrdersTest {
  @Test
  void pays() {}
}
