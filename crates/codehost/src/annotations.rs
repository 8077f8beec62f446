//! Annotations of lines as workflow commands of GitHub Actions.

use crate::comment::Annotation;

/// Most errors of a step that GitHub shows.
const MOST: usize = 10;

/// A line of the log for each failure of a run, in the order of the server: the highest `mine` first. A failure that the
/// change may have caused is an error, any other a notice.
pub fn github(annotations: &[Annotation], run_id: &str) -> Vec<String> {
    let of_run = annotations
        .iter()
        .filter(|annotation| annotation.run_id == run_id);
    of_run.take(MOST).map(command).collect()
}

fn command(annotation: &Annotation) -> String {
    let kind = if annotation.is_mine { "error" } else { "notice" };
    let mut properties = vec![format!("title={}", property(&annotation.title))];
    if let Some(file) = &annotation.file {
        properties.push(format!("file={}", property(file)));
        if let Some(line) = annotation.line {
            properties.push(format!("line={line}"));
        }
    }
    format!("::{kind} {}::{}", properties.join(","), data(&annotation.message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(title: &str, is_mine: bool) -> Annotation {
        Annotation {
            run_id: "1".to_owned(),
            file: Some("a,b:c.ts".to_owned()),
            line: Some(4),
            title: title.to_owned(),
            message: "100 %\n::warning::x".to_owned(),
            is_mine,
        }
    }

    #[test]
    fn no_text_ends_its_command() {
        assert_eq!(
            github(&[annotation("a::b\r\n::error::c", true)], "1"),
            [
                "::error title=a%3A%3Ab%0D%0A%3A%3Aerror%3A%3Ac,file=a%2Cb%3Ac.ts,line=4::100 %25%0A::warning::x"
            ]
        );
    }

    #[test]
    fn at_most_ten_failures_of_the_own_run_are_annotated() {
        let mut all = vec![annotation("own", false); 12];
        all[0].run_id = "2".to_owned();
        let lines = github(&all, "1");
        assert_eq!(lines.len(), 10);
        assert!(lines[0].starts_with("::notice title=own,"), "{}", lines[0]);
    }
}
