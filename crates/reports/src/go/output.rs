//! What a test of Go printed.

/// The text of a failure in an output: the panic if there is one, else the output without the lines that `go test`
/// adds. If nothing remains, the reason in the added lines, such as `exit status 3` or `build failed`.
pub(crate) fn failure_text(output: &str) -> String {
    let printed = printed_text(output);
    if printed.is_empty() {
        exit_reason(output)
    } else {
        printed
    }
}

fn exit_reason(output: &str) -> String {
    let bracketed = |line: &str| {
        let (_, reason) = line.strip_prefix("FAIL\t")?.strip_suffix(']')?.rsplit_once('[')?;
        Some(reason.to_owned())
    };
    output
        .lines()
        .map(str::trim)
        .find_map(|line| {
            if line.starts_with("exit status ") {
                Some(line.to_owned())
            } else {
                bracketed(line)
            }
        })
        .unwrap_or_default()
}

fn printed_text(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !is_frame(line)).collect();
    if let Some(panic) = lines.iter().position(|line| line.starts_with("panic: ")) {
        return lines
            .iter()
            .skip(panic)
            .take_while(|line| !line.trim().is_empty() && !line.starts_with("goroutine "))
            .copied()
            .collect::<Vec<_>>()
            .join("\n");
    }
    let indented = lines
        .iter()
        .all(|line| line.trim().is_empty() || line.starts_with("    "));
    lines
        .iter()
        .map(|line| {
            if indented {
                line.get(4..).unwrap_or_default()
            } else {
                line
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
        .trim()
        .to_owned()
}

/// Whether `go test` itself writes such a line around a test's output.
fn is_frame(line: &str) -> bool {
    const FRAMES: &[&str] = &[
        "=== RUN ",
        "=== PAUSE ",
        "=== CONT ",
        "=== NAME ",
        "--- PASS: ",
        "--- FAIL: ",
        "--- SKIP: ",
        "--- BENCH: ",
        "exit status ",
        "FAIL\t",
        "ok  \t",
        "coverage: ",
    ];
    let line = line.trim_start();
    line == "FAIL" || line == "PASS" || FRAMES.iter().any(|frame| line.starts_with(frame))
}
