use super::*;
use crate::split::{Plan, Timing};

/// The selection of the only shard, and the milliseconds that the timings give it.
fn whole(runner: Runner, list: &str, tests: &[(&str, Option<&str>, u64)]) -> (String, u64, usize) {
    let listing = Listing::parse(runner, list).unwrap();
    let timing = |(name, file, duration_ms): &(&str, Option<&str>, u64)| Timing {
        test_name: (*name).to_owned(),
        file_path: file.map(str::to_owned),
        duration_ms: *duration_ms,
    };
    let timings = Timings {
        tests: tests.iter().map(timing).collect(),
        ..Timings::default()
    };
    let plan = Plan::new(&listing, &timings, 1);
    (
        listing.selection(&plan.shards[0].units),
        plan.shards[0].milliseconds,
        plan.unknown,
    )
}

#[test]
fn playwright() {
    let list = "Listing tests:\n  [chromium] › cart.spec.ts:3:5 › cart › adds: 1:2 up\n  [webkit] › ui/home.spec.ts:10:1 › shows\n\
                Total: 2 tests in 2 files\n";
    let timings = [
        (
            "chromium > cart.spec.ts > cart > adds: 1:2 up",
            Some("tests/cart.spec.ts"),
            70,
        ),
        (
            "webkit > ui/home.spec.ts > shows",
            Some("tests/ui/home.spec.ts"),
            30,
        ),
        ("webkit > gone.spec.ts > gone", Some("tests/gone.spec.ts"), 900),
    ];
    let (selection, milliseconds, unknown) = whole(Runner::Playwright, list, &timings);
    assert_eq!(
        selection,
        "[chromium] › cart.spec.ts › cart › adds: 1:2 up\n[webkit] › ui/home.spec.ts › shows\n"
    );
    assert_eq!((milliseconds, unknown), (100, 0));
}

#[test]
fn pytest() {
    let list = "tests/test_cart.py::TestCart::test_adds[a::b]\ntests/test_cart.py::test_pays\n\n2 tests collected in 0.01s\n";
    let timings = [
        ("tests.test_cart.TestCart > test_adds[a::b]", None, 70),
        ("tests.test_cart > test_pays", None, 30),
    ];
    let (selection, milliseconds, unknown) = whole(Runner::Pytest, list, &timings);
    assert_eq!(
        selection,
        "tests/test_cart.py::TestCart::test_adds[a::b]\ntests/test_cart.py::test_pays\n"
    );
    assert_eq!((milliseconds, unknown), (100, 0));
}

#[test]
fn each_line_is_a_unit_or_a_message_of_its_runner_or_refused_with_its_number() {
    // The units, or the beginning of the reason.
    let parsed = |runner, list: &str| match Listing::parse(runner, list) {
        Ok(listing) => {
            let (lines, units, messages) = listing.counts();
            assert_eq!(lines, units + messages, "{list}");
            listing.units().join("|")
        }
        Err(error) => error.to_string(),
    };
    let cases: Vec<[String; 3]> =
        serde_json::from_str(include_str!("../../../../../testdata/lists.json")).unwrap();
    for [runner, list, right] in &cases {
        let runner = match runner.as_str() {
            "go" => Runner::Go,
            "jest" => Runner::Jest,
            "nextest" => Runner::Nextest,
            "playwright" => Runner::Playwright,
            "pytest" => Runner::Pytest,
            "surefire" => Runner::Surefire,
            "vitest" => Runner::Vitest,
            other => panic!("{other} is no runner"),
        };
        let parsed = parsed(runner, list);
        match right.starts_with("line ") {
            true => assert!(parsed.starts_with(right), "{parsed}"),
            false => assert_eq!(&parsed, right),
        }
    }
}

#[test]
fn nextest_in_both_forms() {
    let timings = [("shop::orders > tests::adds_up", None, 40)];
    for list in [
        "shop::orders:\n    tests::adds_up\n    tests::new (skipped)\n",
        "shop::orders tests::adds_up\n",
    ] {
        let (selection, milliseconds, unknown) = whole(Runner::Nextest, list, &timings);
        assert_eq!(selection, "(binary_id(=shop::orders) & test(=tests::adds_up))\n");
        assert_eq!((milliseconds, unknown), (40, 0));
    }
}

#[test]
fn packages_of_go_take_as_long_as_their_tests() {
    let list = "example.com/shop\nexample.com/shop/cart\n";
    let timings = [
        ("example.com/shop > TestTotal/empty", None, 10),
        ("example.com/shop > TestTotal/full", None, 20),
        ("example.com/shop/cart > TestAdds", None, 5),
    ];
    let (selection, milliseconds, unknown) = whole(Runner::Go, list, &timings);
    assert_eq!(selection, "example.com/shop\nexample.com/shop/cart\n");
    assert_eq!((milliseconds, unknown), (35, 0));
}

#[test]
fn files_of_jest_and_vitest() {
    let timings = [
        ("cart > adds", Some("src/cart.test.ts"), 10),
        ("cart > pays", Some("src/cart.test.ts"), 20),
    ];
    let absolute = "/home/ci/shop/src/cart.test.ts\n/home/ci/shop/src/new.test.ts\n";
    assert_eq!(
        whole(Runner::Jest, absolute, &timings),
        (absolute.to_owned(), 60, 1)
    );
    let relative = "src/cart.test.ts\n";
    assert_eq!(
        whole(Runner::Vitest, relative, &timings),
        (relative.to_owned(), 30, 0)
    );
}

#[test]
fn classes_of_surefire_by_their_files_or_names() {
    let timings = [
        ("org.example.CartTest > adds", None, 10),
        ("org.example.CartTest > pays()", None, 20),
    ];
    for list in [
        "./src/test/java/org/example/CartTest.java\n",
        "org.example.CartTest\n",
    ] {
        let (selection, milliseconds, unknown) = whole(Runner::Surefire, list, &timings);
        assert_eq!(selection, "org/example/CartTest.java\n");
        assert_eq!((milliseconds, unknown), (30, 0));
    }
}

#[test]
fn methods_of_dotnet_without_their_parameters() {
    // VSTest 16.3 writes such a file for NUnit 3.12, with a mark of the byte order on some machines.
    let list = "\u{feff}Shop.CartTests.Adds(1)\r\nShop.CartTests.Adds(2)\nShop.CartTests.Named two\n\
                Shop.CartTests+Inner.Deep\nShop.MoreTests.Pairs(1,\"x y\")\nShop.SizedTests(3).Fits\n\
                Shop.TypedTests<Int32>.Holds\nShop.TypedTests<String>.Keeps(1)\n";
    let timings = [
        ("Shop.CartTests > Adds(1)", None, 10),
        ("Shop.CartTests > Adds(2)", None, 20),
        ("Shop.CartTests+Inner > Deep", None, 1),
        ("Shop.MoreTests > Pairs(1,\"x y\")", None, 2),
        ("Shop.SizedTests(3) > Fits", None, 3),
        ("Shop.TypedTests<String> > Keeps(1)", None, 4),
    ];
    let (selection, milliseconds, unknown) = whole(Runner::Dotnet, list, &timings);
    let names: Vec<&str> = selection.trim_end().split("|FullyQualifiedName").collect();
    assert_eq!(
        names,
        [
            "FullyQualifiedName=Shop.CartTests+Inner.Deep",
            "=Shop.CartTests.Adds",
            "=Shop.CartTests.Named two",
            "=Shop.MoreTests.Pairs",
            "=Shop.SizedTests",
            "=Shop.TypedTests",
            "~Shop.CartTests.Adds\\(",
            "~Shop.MoreTests.Pairs\\(",
            "~Shop.SizedTests\\(",
            "~Shop.TypedTests<",
        ]
    );
    // The one without a duration has the median of its folder.
    assert_eq!((milliseconds, unknown), (43, 1));
}

#[test]
fn a_displayed_name_of_dotnet_is_refused_so_that_no_test_is_left_out() {
    for list in [
        // `dotnet test --list-tests`.
        "The following Tests are available:\n    Shop.CartTests.Adds\n",
        "    Shop.CartTests.Adds\n",
        "Shop.CartTests.Adds\nshows a name\n",
        "Shop..Adds\n",
        "Shop.CartTests.Adds|Pays\n",
    ] {
        let error = Listing::parse(Runner::Dotnet, list).unwrap_err();
        assert!(matches!(error, ListingError::Refused { .. }), "{error}");
    }
    let error = Listing::parse(Runner::Dotnet, "shows a name\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1 of the list, \"shows a name\", is not the full name of a .NET method of letters, digits and _.+`-' :/ (before any parameters); \
         give the list that `dotnet vstest TESTS.dll --ListFullyQualifiedTests --ListTestsTargetPath:FILE` writes"
    );
}

#[test]
fn a_list_without_tests_is_refused_with_the_command_that_writes_one() {
    let error = Listing::parse(Runner::Pytest, "no tests collected in 0.01s\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the list has no test of pytest; give the output of `pytest --collect-only -q`"
    );
}

#[test]
fn an_empty_selection_is_empty() {
    let listing = Listing::parse(Runner::Nextest, "shop::orders tests::adds_up\n").unwrap();
    assert_eq!(listing.selection(&[]), "");
}
