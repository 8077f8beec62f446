//! The causes of an error, for a line of the log.

use std::error::Error;

/// The text of an error and of its causes, the outermost first: `error: cause: cause of the cause`.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| Error::source(*cause));
    for cause in causes {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct OuterError {
        text: &'static str,
        #[source]
        cause: Box<dyn Error>,
    }

    #[test]
    fn the_text_lists_all_causes_in_order() {
        let innermost = io::Error::other("no route to host");
        let middle = OuterError {
            text: "cannot connect",
            cause: Box::new(innermost),
        };
        let outermost = OuterError {
            text: "the database is unreachable",
            cause: Box::new(middle),
        };
        assert_eq!(
            with_causes(&outermost),
            "the database is unreachable: cannot connect: no route to host"
        );
    }
}
