//! Small JUnit reports.

/// A report that started at a time, with cases: each a name and whether it passed.
pub fn report(started_at: &str, cases: &[(&str, bool)]) -> String {
    let mut xml = format!(
        "<testsuite tests=\"{}\" timestamp=\"{started_at}\" file=\"totals.test.ts\">\n",
        cases.len()
    );
    for (name, passed) in cases {
        let failure = if *passed {
            ""
        } else {
            "<failure message=\"expected 3, got 4\">at totals.test.ts:3:1</failure>"
        };
        xml.push_str(&format!(
            "<testcase classname=\"totals\" name=\"{name}\" time=\"0.012\">{failure}</testcase>\n"
        ));
    }
    xml.push_str("</testsuite>\n");
    xml
}
