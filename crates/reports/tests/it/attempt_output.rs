//! What reports have beside the errors of failed attempts is bounded. testdata/readings and the real reports show it.

use crate::support::{inline, plain};

#[test]
fn files_and_output_are_bounded() {
    let marks: String = (0..50)
        .map(|number| format!("[[ATTACHMENT|{number}.png]]\n"))
        .collect();
    let long = format!("[[ATTACHMENT|{}.png]]\n", "x".repeat(2_000));
    let printed = format!("{long}{marks}{}the end", "more\n".repeat(100_000));
    let text = format!(
        "<testsuites><testsuite name='a'><testcase name='fails' classname='a'><failure message='no'/>\
         <system-err>{printed}</system-err></testcase></testsuite></testsuites>"
    );
    let report = plain(vec![inline("r.xml", text)]).unwrap();
    let kept = report.tests[0].attempts[0].output.as_deref().unwrap();
    assert_eq!(kept.attachments.len(), 20);
    assert_eq!(kept.attachments[0].path.as_deref(), Some("0.png"));
    let console = kept.console.as_deref().unwrap();
    assert!(
        console.len() <= 64_000 && console.ends_with("more\nthe end"),
        "{}",
        console.len()
    );
}
