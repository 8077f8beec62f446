//! Recognizes stack frames outside of a project's own code.

/// Packages of the JVM, its languages and its test libraries.
const JVM_LIBRARIES: [&str; 22] = [
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "com.sun.",
    "kotlin.",
    "scala.",
    "groovy.",
    "org.codehaus.groovy.",
    "org.junit.",
    "junit.",
    "org.opentest4j.",
    "org.assertj.",
    "org.hamcrest.",
    "org.testng.",
    "org.mockito.",
    "org.apache.maven.",
    "org.gradle.",
    "org.springframework.",
    "io.kotest.",
    "org.spockframework.",
    "com.google.common.truth.",
];

/// Whether a JVM class belongs to the platform or to a test library.
pub fn is_jvm_library(class: &str) -> bool {
    JVM_LIBRARIES.iter().any(|package| class.starts_with(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_classes_of_whole_packages_are_libraries() {
        assert!(is_jvm_library("org.junit.Assert") && is_jvm_library("java.lang.Thread"));
        assert!(!is_jvm_library("org.shop.OrderTest") && !is_jvm_library("javadocs.Page"));
    }
}
