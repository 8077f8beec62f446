package org.example.shop;

import org.testng.annotations.*;

public class BrokenSetupTest {
    @BeforeClass public void connect() { throw new IllegalStateException("database is not up"); }
    @Test public void neverStarts() { }
    @Test public void neverStartsEither() { }
}
