//! What to do while there is nothing to show: an organization without projects, a project without runs.

use assay_answers::commit::longest_period;
use assay_domain::{ci_service::CiService, id::ProjectId, page::PerPage, project::Project, run::RunQuery};
use maud::{Markup, html};

use crate::{error::FrontError, view::View};

/// The address in commands and jobs if the server has none for reports.
const EXAMPLE: &str = "https://assay.example.org";

/// Whether the project has no run that its plan keeps.
pub(super) fn has_no_run(view: &View<'_>, project: &Project) -> Result<bool, FrontError> {
    let query = RunQuery::newest(longest_period(view.caller.plan, view.now), PerPage::Ten);
    Ok(view.store.runs(project, &query)?.runs.is_empty())
}

/// The command that makes the first project of an organization.
pub(super) fn of_organization(view: &View<'_>) -> Markup {
    let url = view.reports_url.unwrap_or(EXAMPLE);
    let organization = view.caller.organization;
    html! {
        p { "This organization has no project yet. Someone with access to the database makes one with its key for CI:" }
        (with_copy("setup", "the command", &format!("assay-admin setup --org {organization} --project my-project --url {url}")))
        p.sub {
            "The command also prints the lines for a CI job. "
            code { "assay-admin project create --org " (organization) " my-project" }
            " makes only the project."
        }
    }
}

/// How the first report of a project is sent.
pub(super) fn of_project(view: &View<'_>, project: ProjectId) -> Markup {
    let url = view.reports_url.unwrap_or(EXAMPLE);
    html! {
        p { "This project has no run yet. Three steps send the report of a CI job here." }
        @if view.reports_url.is_none() {
            p.wrong role="alert" {
                "This server has no address for reports. Set " code { "ASSAY_PUBLIC_URL" }
                " to the address of the installation, or " code { "ASSAY_INGEST_LISTEN=same" } " to take reports here."
            }
        }
        section aria-labelledby="key" {
            h2 #key { "1. Make a key" }
            p { "Someone with access to the database runs this command. It shows the key once." }
            (with_copy("key-command", "the command", &format!("assay-admin key create-ingest --project {project} --name CI")))
        }
        section aria-labelledby="variables" {
            h2 #variables { "2. Set two variables in the CI service" }
            dl.variables {
                dt { code { "ASSAY_URL" } }
                dd { code #address { (url) } " " (copy_button("address", "the address")) }
                dt { code { "ASSAY_INGEST_KEY" } }
                dd { "the key, as a secret" }
            }
        }
        section aria-labelledby="job" {
            h2 #job { "3. Let the job send its report" }
            p {
                code { "assay run" } " runs the test command and sends the report that it writes. A release has a wheel and npm \
                packages with " code { "assay" } ". Select your CI service:"
            }
            div.panel {
                @for (place, service) in CiService::ALL.into_iter().enumerate() {
                    // Details of one name are exclusive: opening one closes the other.
                    details.plain name="service" open[place == 0] {
                        summary { (service.name()) " " span.sub { code { (service.file()) } } }
                        (with_copy(&format!("job-{place}"), "these lines", &service.job(url)))
                    }
                }
            }
            p.sub {
                "Without CI, " code { "assay upload junit.xml" } " sends a report with the same two variables. This page shows \
                the project once it has a run."
            }
        }
    }
}

/// A text with a button that copies it. `anchor` is unique on the page.
fn with_copy(anchor: &str, what: &str, text: &str) -> Markup {
    html! {
        pre.lines id=(anchor) tabindex="0" { (text) }
        p { (copy_button(anchor, what)) }
    }
}

/// A button that copies the text of another element. It is hidden without a script.
fn copy_button(anchor: &str, what: &str) -> Markup {
    html! { button type="button" data-copy=(anchor) hidden { "Copy " (what) } }
}
