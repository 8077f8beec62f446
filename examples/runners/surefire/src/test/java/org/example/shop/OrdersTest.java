package org.example.shop;

import static org.example.shop.Planted.fails;
import static org.example.shop.Planted.kills;

import org.junit.jupiter.api.Test;

class OrdersTest {
  @Test
  void pays() {
    fails("flaky-3");
  }

  @Test
  void ships() {
    fails("broken");
  }

  @Test
  void returns() throws Exception {
    kills(Planted.runner(), "killed");
    kills(ProcessHandle.current(), "process-killed");
  }
}
