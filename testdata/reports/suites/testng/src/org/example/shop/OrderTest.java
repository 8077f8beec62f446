package org.example.shop;

import static org.testng.Assert.*;

import org.testng.IRetryAnalyzer;
import org.testng.ITestResult;
import org.testng.SkipException;
import org.testng.annotations.*;

public class OrderTest {
    public static class Twice implements IRetryAnalyzer {
        private int left = 2;
        @Override public boolean retry(ITestResult result) { return left-- > 0; }
    }

    private static int calls;

    @Test public void addsUp() { assertEquals(1 + 1, 2); }
    @Test public void isWrong() { assertEquals(1250, 1350, "price in cents"); }
    @Test public void breaks() { throw new IllegalStateException("database is not up"); }
    @Test(retryAnalyzer = Twice.class) public void passesOnTheThirdTry() { assertEquals(++calls, 3, "gateway is cold"); }
    @Test(retryAnalyzer = Twice.class) public void neverPasses() { fail("gateway is cold"); }
    @Test public void isSkipped() { throw new SkipException("not on this machine"); }
    @Test(enabled = false) public void isDisabled() { }
    @Test(dependsOnMethods = "isWrong") public void dependsOnAnother() { }
    @Test(timeOut = 100) public void takesTooLong() throws InterruptedException { Thread.sleep(5_000); }
    @Test(expectedExceptions = IllegalStateException.class) public void shouldThrow() { }
    @DataProvider public Object[][] lines() { return new Object[][] {{"tea", 2}, {"Ünï ✓ <b>&", 0}, {"", -1}, {null, 3}}; }
    @Test(dataProvider = "lines") public void total(String sku, int quantity) { assertTrue(quantity > 0, "quantity"); }
    @DataProvider public Object[][] objects() { return new Object[][] {{new Object()}, {new Object()}}; }
    @Test(dataProvider = "objects") public void holds(Object any) { assertNotNull(any); }
}
