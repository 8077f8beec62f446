//! The reader of each format.

use crate::{
    allure, catch2, ctest, ctrf, cucumber, cucumber_messages, dart,
    events::read as events,
    go,
    input::Input,
    jest,
    json::read as read_json,
    junit, karate, libtest, mocha, nunit, playwright, pytest_json,
    report::{Format, ReadError, Report},
    robot, rspec, swift, tap, testng, trx,
    xml::read as xml,
    xunit,
};

/// The first report of a text, what a file of Allure says about others, and the byte where another report begins.
pub(crate) type FirstReport = (Report, Option<allure::Part>, Option<usize>);

/// Reads the first report of a text in this format.
pub(crate) fn read(format: Format, input: &Input<'_>) -> Result<FirstReport, ReadError> {
    match format {
        Format::Playwright => playwright::read(input).map(with_next),
        Format::Junit => xml::<junit::Run<'_>>(input).map(plain),
        Format::Ctrf => read_json::<ctrf::File>(input).map(with_next),
        Format::Jest => read_json::<jest::Run>(input).map(with_next),
        Format::Go => events::<go::Run>(input).map(plain),
        Format::Trx => xml::<trx::Run<'_>>(input).map(plain),
        Format::Allure => allure::read(input).map(with_part),
        Format::Testng => xml::<testng::Run<'_>>(input).map(plain),
        Format::Cucumber => cucumber::read(input).map(with_next),
        Format::CucumberMessages => cucumber_messages::read(input).map(plain),
        Format::Robot => xml::<robot::Run<'_>>(input).map(plain),
        Format::Mocha => read_json::<mocha::Run>(input).map(with_next),
        Format::Mochawesome => read_json::<mocha::AwesomeRun>(input).map(with_next),
        Format::Karate => karate::read(input).map(with_next),
        Format::Nunit => xml::<nunit::Run>(input).map(plain),
        Format::Xunit => xml::<xunit::Run>(input).map(plain),
        Format::PytestJson => read_json::<pytest_json::Run>(input).map(with_next),
        Format::Rspec => read_json::<rspec::Run>(input).map(with_next),
        Format::Tap => tap::read(input).map(plain),
        Format::Dart => events::<dart::Run>(input).map(plain),
        Format::Libtest => events::<libtest::Run>(input).map(plain),
        Format::Ctest => xml::<ctest::Run>(input).map(plain),
        Format::Catch2 => xml::<catch2::Run>(input).map(plain),
        Format::Swift => events::<swift::Run>(input).map(plain),
    }
}

const fn plain(report: Report) -> FirstReport {
    (report, None, None)
}

fn with_part((report, part): (Report, allure::Part)) -> FirstReport {
    (report, Some(part), None)
}

fn with_next((report, another_at): (Report, Option<usize>)) -> FirstReport {
    (report, None, another_at)
}
