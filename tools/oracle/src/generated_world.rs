//! The generated world, imported and served.

use std::sync::OnceLock;

use assay_testkit::TestDatabase;

use crate::{
    checks::ProjectChecks,
    clock,
    comparison::Comparison,
    generator::{self, Sketch},
    http::Client,
    importer,
    stack::Stack,
    world::{Organization, Plan, Project, ReportSource},
};

/// The programs over the test's own database, and the world that was imported into it.
pub struct GeneratedWorld {
    pub stack: Stack,
    /// A standard organization and a pro one.
    pub organizations: Vec<Organization>,
    /// The time at which the world was generated.
    pub now: i64,
}

impl GeneratedWorld {
    /// Imports every run of the world. The first test of a process imports them; each test has a copy of the database.
    pub fn whole() -> Self {
        static IMPORTED: OnceLock<ImportedWorld> = OnceLock::new();
        let ImportedWorld {
            database,
            organizations,
            now,
        } = IMPORTED.get_or_init(|| {
            let (now, stack) = (clock::now(), Stack::empty());
            let organizations = import(&stack, now);
            ImportedWorld {
                database: stack.into_database(),
                organizations,
                now,
            }
        });
        Self {
            stack: Stack::serve(database.copy()),
            organizations: organizations.clone(),
            now: *now,
        }
    }

    /// Fails with a list if a check failed or the server panicked.
    pub fn check(&self, section: &str, checks: impl FnOnce(&mut Comparison, &Self)) {
        let mut comparison = Comparison::default();
        comparison.section(section);
        checks(&mut comparison, self);
        let log = self.stack.log();
        comparison.holds(!log.contains("panicked"), || {
            format!("the server panicked: {log}")
        });
        println!("{}", comparison.summary());
        assert_eq!(comparison.failed(), 0, "see the list above");
    }

    /// Checks each project that its organization may read. Projects are checked in parallel.
    pub fn each_project(
        &self,
        comparison: &mut Comparison,
        check: impl Fn(&mut Comparison, &mut ProjectChecks<'_>) + Sync,
    ) {
        let projects = self.organizations.iter().flat_map(|organization| {
            let projects = organization.projects.iter();
            projects.map(|project| self.project_checks(organization, project))
        });
        comparison.side_by_side(projects, |comparison, mut checks| check(comparison, &mut checks));
    }

    /// The inputs of the checks of a project.
    pub fn project_checks<'a>(
        &self,
        organization: &'a Organization,
        project: &'a Project,
    ) -> ProjectChecks<'a> {
        ProjectChecks {
            client: Client::new(self.stack.address(), &organization.key),
            organization,
            project,
            now: self.now,
            fingerprints: Default::default(),
        }
    }
}

/// The initial state of each test.
struct ImportedWorld {
    database: TestDatabase,
    organizations: Vec<Organization>,
    now: i64,
}

/// Generates the world of this time and imports it. Checks the importer's output.
pub fn import(stack: &Stack, now: i64) -> Vec<Organization> {
    let seed = std::env::var("ASSAY_ORACLE_SEED").unwrap_or_else(|_| "20261120".to_owned());
    let seed = seed.trim().parse().expect("ASSAY_ORACLE_SEED is a number");
    let mut organizations = make(seed, now);
    let mut comparison = Comparison::default();
    comparison.section("import");
    for organization in &mut organizations {
        importer::create_organization(stack, organization, &mut comparison);
        for project in &mut organization.projects {
            importer::create_project(stack, &organization.id, project, &mut comparison);
        }
    }
    let projects = organizations
        .iter_mut()
        .flat_map(|organization| &mut organization.projects);
    comparison.side_by_side(projects, |comparison, project| {
        importer::import_runs(stack, project, comparison);
    });
    assert_eq!(comparison.failed(), 0, "seed {seed}: {}", comparison.summary());
    organizations
}

/// A standard organization and a pro one.
fn make(seed: u64, now: i64) -> Vec<Organization> {
    let organization = |name: &str, plan: Plan, projects: Vec<Project>| Organization {
        id: String::new(),
        name: name.to_owned(),
        plan,
        key: String::new(),
        projects,
    };
    // A project without runs.
    let empty = |name: &str| Project {
        id: String::new(),
        name: name.to_owned(),
        stable: "main".to_owned(),
        source: ReportSource::Flags,
        chat_events: None,
        pr_comments: None,
        runs: Vec::new(),
    };
    let sketches = [
        Sketch {
            name: "Shop 🛒",
            stable: "main",
            source: ReportSource::Github,
            days: 72,
            runs: 44,
            tests: 48,
        },
        Sketch {
            name: "warehouse \"quoted\" & <b>",
            stable: "trunk/stable",
            source: ReportSource::Gitlab,
            days: 104,
            runs: 40,
            tests: 52,
        },
        Sketch {
            name: "Flags",
            stable: "main",
            source: ReportSource::Flags,
            days: 20,
            runs: 36,
            tests: 46,
        },
    ];
    let mut projects: Vec<Project> = sketches
        .iter()
        .map(|sketch| generator::project(seed, sketch, now))
        .collect();
    projects[0].chat_events = Some(vec!["run_failed", "test_broken", "new_error"]);
    projects[0].pr_comments = Some(true);
    projects[1].pr_comments = Some(false);
    let flags = projects.pop().expect("three projects");
    let warehouse = projects.pop().expect("three projects");
    let shop = projects.pop().expect("three projects");
    vec![
        organization("Standard & Söhne", Plan::Standard, vec![shop, empty("Empty")]),
        organization("Pro", Plan::Pro, vec![warehouse, flags]),
    ]
}
