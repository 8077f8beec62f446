#include "catch_amalgamated.hpp"

#include <iostream>
#include <stdexcept>

static int total(int price, int discount) { return price - discount; }

TEST_CASE("adds up", "[orders]") {
    CHECK(total(1500, 150) == 1350);
}

TEST_CASE("keeps the discount", "[orders]") {
    SECTION("with one card") {
        CHECK(total(1500, 150) == 1350);
    }
    SECTION("with two cards") {
        INFO("cards: 2");
        CHECK(total(1500, 250) == 1350);
        CHECK(total(1500, 350) == 1350);
    }
}

TEST_CASE("refuses an empty order") {
    throw std::runtime_error("no items");
}

TEST_CASE("ships") {
    FAIL("the carrier is closed");
}

TEST_CASE("pays by card") {
    SKIP("no card reader");
}

TEST_CASE("lists", "[orders]") {
    SECTION("by date") {
        SKIP("later");
    }
    SECTION("by price") {
        SUCCEED();
    }
}

TEST_CASE("known defect", "[!mayfail]") {
    CHECK(1 == 2);
}

TEST_CASE("expected to fail, but passes", "[!shouldfail]") {
    CHECK(1 == 1);
}

TEST_CASE("warns", "[orders]") {
    WARN("slow <disk> & \"cache\"");
    std::cout << "on standard output" << std::endl;
    CHECK(true);
}

struct Basket {
    int items = 0;
};

TEST_CASE_METHOD(Basket, "is empty", "[basket]") {
    CHECK(items == 0);
}

TEMPLATE_TEST_CASE("sums", "[orders]", int, long) {
    CHECK(TestType{1} + TestType{2} == TestType{3});
}
