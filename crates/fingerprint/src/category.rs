//! The category of an error: the first row of a table that matches its origin or text.

use std::sync::LazyLock;

use assay_domain::signature::Category;
use regex::RegexSet;

use crate::normal::NormalForm;

/// The rows in their order. Matched against `origin: text`, both masked.
const ROWS: [(Category, &str); 23] = [
    // Playwright's matchers report every failure as a time-out. The inspected property is more precise.
    (
        Category::Element,
        r"(?i)waiting for expect\(locator\)\.(?:not\.)?toBe(?:Visible|Hidden|Attached|Enabled|Disabled|Checked|Focused|Editable|Empty|InViewport)",
    ),
    (
        Category::Assertion,
        r"(?i)timed out <duration> waiting for expect\(",
    ),
    (Category::Element, r"(?i)expected to find element"),
    (
        Category::Assertion,
        r"(?i)timed out retrying after <duration>: expected",
    ),
    (
        Category::Timeout,
        r"(?i)^\S*(?:time[d]?_?out)\S*(?:error|exception|expired)?: |(?:TimeoutError|TimeoutException|TimeoutExpired|TimedOutException|DeadlineExceeded)\b",
    ),
    (
        Category::Timeout,
        r"(?i)\btime[d]? ?out (?:of )?<duration>|\btime[d]? ?out \(><|timeout exceeded|exceeded timeout|timeout of .{0,40}exceeded|\btimed out\b|deadline exceeded|test timeout|did not (?:finish|complete) within|timeout waiting|wait(?:ing)? timed",
    ),
    (
        Category::Element,
        r"(?i)strict mode violation|\belement .{1,80} not (?:visible|found|enabled|present)\b|element\(s\) not found|element is not (?:visible|attached|enabled|stable|clickable)|element (?:click )?intercept|not attached to the DOM|stale element|no such element|unable to (?:locate|find) (?:an? )?(?:accessible )?(?:element|role|label)|NoSuchElement|ElementNotInteractable|ElementHandle|expected to find element|never found it|TestingLibraryElementError|is not (?:visible|clickable) at point|waiting for (?:selector|locator|getBy)",
    ),
    (
        Category::Element,
        r"^expect\(locator\)\.(?:not\.)?toBe(?:Visible|Hidden|Attached|Enabled|Disabled|Checked|Focused|Editable|Empty|InViewport)\b",
    ),
    (
        Category::Network,
        r"\b(?:ECONN(?:REFUSED|RESET|ABORTED)|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|EADDRINUSE|ERR_(?:CONNECTION|NETWORK|NAME|INTERNET|ADDRESS|SSL|CERT|EMPTY|TIMED|HTTP|ABORTED|PROXY|TUNNEL)\w*|NS_ERROR_(?:NET|CONNECTION|UNKNOWN)\w*)",
    ),
    (
        Category::Network,
        r"(?i)net::err_|socket hang up|connection (?:was )?(?:refused|reset|closed|aborted)|connect(?:ion)? (?:failed|error)|getaddrinfo|no such host|could not resolve host|name or service not known|fetch failed|network ?error|network is unreachable|request failed with status code|bad gateway|service unavailable|gateway time|ssl ?handshake|certificate (?:verify|has expired)|address already in use|broken pipe|request context disposed|dial tcp|(?:Connection|Connect|UnknownHost|Socket|HttpHostConnect|NoRouteToHost|SSL|HTTP|URL|Http(?:Request)?)(?:Error|Exception)\b|requests\.exceptions",
    ),
    (
        Category::Assertion,
        r"(?i)\bwanted but not invoked\b|\b(?:WantedButNotInvoked|NeverWantedButInvoked|TooManyActualInvocations|TooFewActualInvocations|NoInteractionsWanted|ArgumentsAreDifferent)\b",
    ),
    (
        Category::Crash,
        r"(?i)worker process exited|process (?:aborted|exited|terminated|crashed)|(?:page|target|tab|browser|renderer|worker) crashed|target (?:page, context or browser )?(?:has been )?closed|session deleted|sig(?:segv|abrt|kill|bus|ill|fpe|term)\b|segmentation fault|core dumped|stack overflow|out of memory|heap (?:limit|out)|OutOfMemoryError|StackOverflowError|access violation|bus error|fatal error|exit status <n>|exit(?:ed with)? code <n>|double free|AddressSanitizer|nil pointer|null pointer|NullPointerException|NullReferenceException|runtime error",
    ),
    (
        Category::Setup,
        r#"(?i)failed on (?:setup|teardown)|"(?:before|after) (?:all|each)" hook|\b(?:before|after)(?:All|Each|Suite|Class|Hook)\b|collection (?:failure|error)|importing test module|cannot find (?:module|package|name)|no module named|test suite failed to run|failed to (?:load|resolve|parse|compile|import|collect)|fixture .{0,80}not found|error in fixture|no tests? found|build failed|compil(?:ation|er) (?:failed|error)|could not compile|undefined step|step .{0,80}undefined|setup failed|teardown failed|initialization ?error|cannot load such file|unexpected token .{0,40}(?:import|export)|missing (?:dependency|fixture)"#,
    ),
    (
        Category::Setup,
        r"^(?:\w+[.:\\]+)*(?:SyntaxError|IndentationError|ImportError|ModuleNotFoundError|LoadError|NoClassDefFoundError|ClassNotFoundException|ExceptionInInitializerError|UsageError|FixtureLookupError|ParseError|CompileError|UnsatisfiedDependencyException|ApplicationContextException): ",
    ),
    (Category::Assertion, r"^expect(?:\.\w+)?\("),
    (
        Category::Assertion,
        r"(?i)^(?:\w+[.:\\$]+)*(?:Assert(?:ion)?\w*|Expectation\w*|ComparisonFailure|MultipleFailuresError|MultipleExpectations\w*|AssertFailed\w*|EqualException|TrueException|FalseException|NotNull\w*|ShouldAssert\w*|PendingExampleFixed\w*|Failed)(?:Error|Exception|Failure)?: ",
    ),
    (
        Category::Assertion,
        r"(?i)\bassert(?:ion|ing)?s?\b|\bexpect(?:ed|ing|s|ation)?\b|\bbut (?:was|got|found)\b|\b(?:got|want)\b|<value> (?:!=|==) |^: (?:\S+: )?\S+ (?:!=|==) \S+|does not (?:equal|match|contain)|should (?:be|have|equal|match|contain|not)|not ok <n>|\bis not <n>|snapshot|ought to fail|to deeply equal",
    ),
    (
        Category::Crash,
        r"^(?:\w+[.:\\$]+)*\w*(?:Error|Exception|Fault|panic|Interrupt|Exit|Throwable|Abort|Violation)(?:\$\w+)*: ",
    ),
    (Category::Crash, r"^[A-Za-z_]\w*(?:(?:\.|::|\\)\w+){2,}: "),
    (
        Category::Crash,
        r"(?i)\bpanicked\b|\btraceback\b|unhandled (?:promise )?(?:rejection|exception)|uncaught|undefined is not|is not a function|cannot read propert",
    ),
    (Category::Assertion, r"^(?:\w+[.:\\]+)*\w*(?:Failure|Failed): "),
    (
        Category::Setup,
        r"(?i)\b(?:setup|set-up|teardown|tear-down|fixture|hook)\b.{0,40}\b(?:fail|error|threw|thrown)",
    ),
    (
        Category::Network,
        r"(?i)\bhttp (?:status )?<n>\b|\bstatus code <n>",
    ),
];

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, compiled by every test"
)]
static TABLE: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(ROWS.map(|(_, pattern)| pattern)).expect("constant patterns compile"));

/// The category of the first row that matches.
pub(crate) fn of(form: &NormalForm) -> Category {
    // The whole text is a type without a message.
    let is_named = form.text.ends_with("Error") || form.text.ends_with("Exception");
    let subject = if form.origin.is_empty() && is_named && form.is_type() {
        format!("{}: ", form.text)
    } else {
        format!("{}: {}", form.origin, form.text)
    };
    let row = TABLE
        .matches(&subject)
        .iter()
        .next()
        .and_then(|index| ROWS.get(index));
    row.map_or(Category::Other, |(category, _)| *category)
}
