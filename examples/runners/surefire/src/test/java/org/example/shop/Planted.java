package org.example.shop;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/** Faults that the variable PLANTED names, one a word. */
public class Planted {
  private static boolean has(String fault) {
    return Arrays.asList(System.getenv().getOrDefault("PLANTED", "").split(" ")).contains(fault);
  }

  private static int calls;

  public static void fails(String fault) {
    calls++;
    // Earlier tests of the process spoil what this one needs.
    if (fault.equals("breakage") && calls > 1 && has("polluted")) throw new AssertionError("planted: polluted");
    if (has(fault)) throw new AssertionError("planted: " + fault);
  }

  /** Kills a process with this fault. */
  public static void kills(ProcessHandle process, String fault) throws Exception {
    if (!has(fault)) return;
    new ProcessBuilder("kill", "-KILL", Long.toString(process.pid())).start();
    TimeUnit.MINUTES.sleep(1);
  }

  /** The runner, which starts the process of the tests by a shell. */
  public static ProcessHandle runner() {
    ProcessHandle parent = ProcessHandle.current().parent().orElseThrow();
    boolean isShell = parent.info().command().orElse("").endsWith("sh");
    return isShell ? parent.parent().orElseThrow() : parent;
  }
}
