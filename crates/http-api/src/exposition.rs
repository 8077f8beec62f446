//! The two text formats of Prometheus metrics.
//!
//! `prometheus-client` writes OpenMetrics 1.0. A scraper that does not request it gets the older text format 0.0.4,
//! which every scraper reads. Only the comment lines differ.

use actix_web::http::header::Accept;

/// A text format for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus text format 0.0.4.
    Plain,
}

impl Exposition {
    /// The format that a scraper prefers: 0.0.4 unless its `Accept` header ranks OpenMetrics above plain text.
    pub(crate) fn negotiate(accept: &Accept) -> Self {
        let preferred = accept
            .ranked()
            .into_iter()
            .map(|media| media.essence_str().to_owned())
            .find(|media| media == "application/openmetrics-text" || media == "text/plain");
        match preferred.as_deref() {
            Some("application/openmetrics-text") => Self::OpenMetrics,
            Some(_) | None => Self::Plain,
        }
    }

    /// The value of `Content-Type`.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts metrics in OpenMetrics to this format.
    pub(crate) fn convert(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Plain => plain(&open_metrics),
        }
    }
}

/// OpenMetrics names a family in its comments, while 0.0.4 names the samples: `x_total` for the counter `x`, and
/// `x_info`, a gauge, for the info `x`. 0.0.4 has neither units nor an end mark.
fn plain(open_metrics: &str) -> String {
    let mut plain = String::with_capacity(open_metrics.len());
    // The HELP line of a family comes before its TYPE line, which determines the names of the samples.
    let mut help = None;
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(_), Some(text)) => help = Some(text),
            (Some("#"), Some("TYPE"), Some(family), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    other => ("", other),
                };
                if let Some(text) = help.take() {
                    plain.push_str(&format!("# HELP {family}{suffix} {text}\n"));
                }
                plain.push_str(&format!("# TYPE {family}{suffix} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use actix_web::{http::header::Header as _, test::TestRequest};

    use super::*;

    fn negotiated(accept: &str) -> Exposition {
        let request = TestRequest::default()
            .insert_header(("Accept", accept))
            .to_http_request();
        Exposition::negotiate(&Accept::parse(&request).unwrap())
    }

    #[test]
    fn openmetrics_is_sent_only_where_it_is_preferred() {
        for (accept, expected) in [
            ("*/*", Exposition::Plain),
            ("text/html", Exposition::Plain),
            ("text/plain;version=0.0.4", Exposition::Plain),
            ("application/openmetrics-text", Exposition::OpenMetrics),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Exposition::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.3",
                Exposition::Plain,
            ),
        ] {
            assert_eq!(negotiated(accept), expected, "{accept}");
        }
    }

    #[test]
    fn comments_name_the_samples_in_the_older_format() {
        let open_metrics = "# HELP a_build The running program.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
            # HELP a_requests Requests.\n# TYPE a_requests counter\na_requests_total{code=\"# HELP x y\"} 3\n\
            # HELP a_duration_seconds Time.\n# TYPE a_duration_seconds histogram\n# UNIT a_duration_seconds seconds\n\
            a_duration_seconds_sum 0.5\n# EOF\n";
        assert_eq!(
            Exposition::Plain.convert(open_metrics.to_owned()),
            "# HELP a_build_info The running program.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
            # HELP a_requests_total Requests.\n# TYPE a_requests_total counter\na_requests_total{code=\"# HELP x y\"} 3\n\
            # HELP a_duration_seconds Time.\n# TYPE a_duration_seconds histogram\na_duration_seconds_sum 0.5\n"
        );
        assert_eq!(
            Exposition::OpenMetrics.convert(open_metrics.to_owned()),
            open_metrics
        );
    }
}
