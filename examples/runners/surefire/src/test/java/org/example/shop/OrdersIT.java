package org.example.shop;

import org.junit.jupiter.api.Test;

/** Surefire leaves it to Failsafe. */
class OrdersIT {
  @Test
  void pays() {
    throw new AssertionError("Surefire ran a class of Failsafe");
  }
}
