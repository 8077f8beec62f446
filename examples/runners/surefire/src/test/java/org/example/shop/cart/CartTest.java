package org.example.shop.cart;

import static org.example.shop.Planted.fails;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@TestMethodOrder(MethodOrderer.MethodName.class)
class CartTest {
  @Test
  @DisplayName("it's a \"cart\" [1], (ü)")
  void pays() {
    fails("flaky-1");
  }

  @Test
  void paysTwice() {
    fails("breakage");
  }

  @ParameterizedTest
  @ValueSource(strings = {"/", "/a, b"})
  void routes(String path) {}

  @Nested
  class Empty {
    @Test
    void pays() {
      fails("flaky-2");
    }

    @Nested
    class Again {
      @Test
      void pays() {}
    }
  }
}
