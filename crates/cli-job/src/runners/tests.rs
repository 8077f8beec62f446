//! Checks the text of lists. `examples/runners/check` runs them with the real runners.

use super::*;

fn test(name: &str, file: Option<&str>) -> TestName {
    TestName {
        name: name.to_owned(),
        file_path: file.map(str::to_owned),
    }
}

fn text(runner: Runner, list_use: Use, tests: &[TestName]) -> String {
    list(tests, runner, list_use).text
}

fn reason(runner: Runner, test: &TestName) -> Option<&'static str> {
    let list = list(std::slice::from_ref(test), runner, Use::Deselect);
    assert_eq!(list.named.len() + list.left_out.len(), 1);
    list.left_out.first().map(|(_, reason)| *reason)
}

#[test]
fn every_runner_gets_its_own_names() {
    let two_tests = |a: &str, b: &str| [test(a, None), test(b, None)];
    let spec = [test(
        "chromium > ui/home.spec.ts > home > shows",
        Some("e2e/ui/home.spec.ts"),
    )];
    assert_eq!(
        text(Runner::Playwright, Use::Deselect, &spec),
        "[chromium] › ui/home.spec.ts › home › shows\n[chromium] › ui/home.spec.ts › home > shows\n"
    );
    let rust = two_tests("shop > tests::adds", "shop::bin/shop > a\\b (1), c");
    assert_eq!(
        text(Runner::Nextest, Use::Deselect, &rust),
        "not ((binary_id(=shop) & test(=tests::adds)) | (binary_id(=shop::bin/shop) & test(=a\\\\b (1\\)\\, c)))\n"
    );
    let go = two_tests("example.com/shop > TestTotal/a+b", "example.com/shop > TestCart");
    assert_eq!(
        text(Runner::Go, Use::Deselect, &go),
        "example.com/shop\t^TestTotal$/^a\\+b$|^TestCart$\n"
    );
    let js = [
        test("cart > adds (up)", None),
        test("a.test.ts > pays", Some("a.test.ts")),
    ];
    assert_eq!(
        text(Runner::Vitest, Use::Deselect, &js),
        "^(?!(?:cart(?: >)? adds \\(up\\)|pays)$)\n"
    );
    assert_eq!(
        text(Runner::Jest, Use::Select, &js),
        "^(?:cart(?: >)? adds \\(up\\)|pays)$\n"
    );
    let dotnet = two_tests("Shop.CartTests > Adds", "Shop.CartTests > Pays");
    assert_eq!(
        text(Runner::Dotnet, Use::Deselect, &dotnet),
        "FullyQualifiedName!=Shop.CartTests.Adds&FullyQualifiedName!=Shop.CartTests.Pays\n"
    );
    let java = two_tests(
        "org.example.OrderTest > total()",
        "org.example.OrderTest$Empty > ships",
    );
    assert_eq!(
        text(Runner::Surefire, Use::Deselect, &java),
        "Test*,*Test,*Tests,*TestCase,*Test$*,*Tests$*,*TestCase$*,\
         !%regex[org/example/OrderTest\\.class#total],!%regex[org/example/OrderTest\\$Empty\\.class#ships]\n"
    );
    assert_eq!(
        text(Runner::Surefire, Use::Select, &java[1..]),
        "%regex[org/example/OrderTest\\$Empty\\.class#ships]\n"
    );
    assert_eq!(
        text(Runner::Txt, Use::Select, &spec),
        "e2e/ui/home.spec.ts\tchromium > ui/home.spec.ts > home > shows\n"
    );
    assert_eq!(
        text(Runner::Json, Use::Select, &js[..1]),
        "[{\"testName\":\"cart > adds (up)\",\"filePath\":null}]\n"
    );
}

#[test]
fn tests_that_a_runner_cannot_name_are_left_out_with_the_reason() {
    for (runner, name, file) in [
        (Runner::Playwright, "home > shows", None),
        (Runner::Playwright, "home > shows", Some("a.spec.ts")),
        (Runner::Playwright, "chromium > a.spec.ts", Some("a.spec.ts")),
        (Runner::Playwright, "[id].spec.ts > shows", Some("[id].spec.ts")),
        (Runner::Playwright, "a.spec.ts > home › page", Some("a.spec.ts")),
        (Runner::Playwright, "a.spec.ts > home >  shows", Some("a.spec.ts")),
        (
            Runner::Playwright,
            "a.spec.ts > 1 > 2 > 3 > 4 > 5 > 6 > 7",
            Some("a.spec.ts"),
        ),
        (Runner::Nextest, "adds", None),
        (Runner::Go, "TestTotal", None),
        (Runner::Jest, "a.test.ts", Some("a.test.ts")),
        (Runner::Dotnet, "Shop.CartTests > Adds(sku: \"A1\")", None),
        (Runner::Surefire, "org.example.OrderTest > total(tea, 2)", None),
        (Runner::Surefire, "org.example.OrderTest > total{String}[1]", None),
        (Runner::Surefire, "org.example.PriceTest > total[1, it's]", None),
        (Runner::Jest, "two\nlines", None),
    ] {
        assert!(reason(runner, &test(name, file)).is_some(), "{runner:?} {name}");
    }
}

/// A stored name does not show whether ` > ` separates two titles or is a part of one.
#[test]
fn a_title_may_contain_the_separator() {
    let pattern = text(Runner::Vitest, Use::Select, &[test("home > a > b", None)]);
    assert_eq!(pattern, "^(?:home(?: >)? a(?: >)? b)$\n");
    let spec = [test("a.spec.ts > home > a > b", Some("a.spec.ts"))];
    assert_eq!(
        text(Runner::Playwright, Use::Select, &spec),
        "a.spec.ts › home › a › b\na.spec.ts › home > a › b\na.spec.ts › home › a > b\na.spec.ts › home > a > b\n"
    );
}

#[test]
fn an_empty_list_changes_nothing_or_runs_nothing() {
    assert_eq!(text(Runner::Nextest, Use::Deselect, &[]), "all()\n");
    assert_eq!(text(Runner::Jest, Use::Deselect, &[]), "^\n");
    assert_eq!(text(Runner::Go, Use::Deselect, &[]), "");
    assert_eq!(text(Runner::Surefire, Use::Deselect, &[]), "\n");
    assert_eq!(text(Runner::Surefire, Use::Select, &[]), "!*\n");
    assert_eq!(text(Runner::Dotnet, Use::Deselect, &[]), "\n");
    assert_eq!(
        text(Runner::Dotnet, Use::Select, &[]),
        "FullyQualifiedName=none&FullyQualifiedName!=none\n"
    );
}
