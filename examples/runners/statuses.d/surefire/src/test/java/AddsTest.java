import static org.junit.Assert.assertNotEquals;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

@RunWith(Parameterized.class)
public class AddsTest {
    @Parameterized.Parameter public String row;

    /** Rows of one name. */
    @Parameterized.Parameters(name = "row")
    public static Object[] rows() {
        return new Object[] {"first-row", "last-row"};
    }

    @Test
    public void adds() {
        assertNotEquals(System.getenv("PLANTED"), row);
    }
}
