import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;

import org.junit.AfterClass;
import org.junit.Test;

public class ShopTest {
    private static final String PLANTED = System.getenv("PLANTED");
    private static int attempts = 0;

    @AfterClass
    public static void tearDown() {
        assertNotEquals("outside", PLANTED);
    }

    @Test
    public void sends() {
        attempts++;
        assertTrue(PLANTED == null || !PLANTED.matches("flaky|outside") || attempts > 1);
    }

    @Test
    public void pays() {
        assertNotEquals("broken", PLANTED);
    }

    @Test
    public void ships() {}

    @Test
    public void returns() {}
}
