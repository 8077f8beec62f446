//! The parameters of a path.

use assay_http::decode;

/// The parameters of a path, with their names in the route.
pub(crate) struct PathParameters(Vec<(&'static str, Option<String>)>);

impl PathParameters {
    /// Parses a raw path that matches `pattern` below `base`. A value that cannot be decoded becomes none.
    pub(crate) fn of(raw: &str, base: &'static str, pattern: &'static str) -> Self {
        let names = base.split('/').chain(pattern.split('/').skip(1));
        let parameters = names.zip(raw.split('/')).filter_map(|(name, value)| {
            let name = name.strip_prefix('{')?.strip_suffix('}')?;
            Some((name, decode(value)))
        });
        Self(parameters.collect())
    }

    /// The value of the parameter of this name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(theirs, _)| *theirs == name)?;
        value.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_parameters_of_its_route() {
        let parameters =
            |raw| PathParameters::of(raw, "/api/v1", "/projects/{projectId}/tests/{testName}/status");
        let path = parameters("/%61pi/v1/projects/a%2Fb/%74ests/c+%25/status");
        assert_eq!(path.value("projectId"), Some("a/b"));
        assert_eq!(path.value("testName"), Some("c+%"));
        assert_eq!(path.value("tests"), None);
        let not_text = parameters("/api/v1/projects/%FF/tests/%00/status");
        assert_eq!(not_text.value("projectId"), None);
        assert_eq!(not_text.value("testName"), None);
    }
}
