//! Every field of every route, over the whole world.

use assay_oracle::{
    Product, analyze,
    checks::{self, Scene},
    http::Client,
    scripted,
    tally::Tally,
    world::{Plan, Way},
};

/// A project without any data of the other projects' tests and errors.
fn empty(product: &Product) -> Scene<'_> {
    let organization = &product.world[0];
    let project = organization
        .projects
        .last()
        .expect("the empty project is the last");
    product.scene(organization, project)
}

/// The fingerprint of each error of a project, from the details of its runs.
fn record_fingerprints(tally: &mut Tally, scene: &mut Scene<'_>) {
    checks::run_detail::run_details(tally, scene);
}

#[test]
fn projects() {
    Product::whole().check("projects", |tally, product| {
        for organization in product.world.iter().filter(|one| one.plan != Plan::Free) {
            let client = Client::new(product.stack.address(), &organization.key);
            checks::projects::projects(tally, &client, organization);
        }
    });
}

#[test]
fn settings_and_branches() {
    Product::whole().check("settings and branches", |tally, product| {
        product.each_project(tally, |tally, scene| {
            checks::settings(tally, scene);
            checks::branches(tally, scene);
        });
    });
}

#[test]
fn run_details() {
    Product::whole().check("run details", |tally, product| {
        product.each_project(tally, record_fingerprints)
    });
}

#[test]
fn runs() {
    Product::whole().check("runs", |tally, product| {
        product.each_project(tally, |tally, scene| checks::runs::runs(tally, scene));
    });
}

#[test]
fn attempts() {
    Product::whole().check("attempts", |tally, product| {
        product.each_project(tally, |tally, scene| {
            record_fingerprints(tally, scene);
            checks::attempts::attempts(tally, scene);
        });
    });
}

#[test]
fn history() {
    Product::whole().check("history", |tally, product| {
        product.each_project(tally, |tally, scene| {
            record_fingerprints(tally, scene);
            checks::history(tally, scene);
        });
    });
}

#[test]
fn error_signatures() {
    Product::whole().check("signatures", |tally, product| {
        let empty = empty(product);
        product.each_project(tally, |tally, scene| {
            record_fingerprints(tally, scene);
            checks::signatures::signatures(tally, scene);
            for print in scene.fingerprints.values() {
                let path = empty.path(&["errors", print]);
                checks::refused(tally, &path, &empty.client.get(&path), 404, "error_not_found");
            }
        });
    });
}

#[test]
fn verdicts_and_the_flaky_list() {
    Product::whole().check("verdicts", |tally, product| {
        let empty = empty(product);
        product.each_project(tally, |tally, scene| {
            let verdicts = checks::verdicts::verdicts(tally, scene);
            tally.section("flaky list");
            checks::flaky::flaky(tally, scene, &verdicts);
            if scene.project.way == Way::Flags && !verdicts.is_empty() {
                tally.section("analyze");
                analyze::analyze(tally, &product.stack, scene, &verdicts);
            }
            tally.section("other projects");
            for ((name, _), _) in verdicts.iter().take(5) {
                let path = empty.path(&["tests", name]);
                checks::refused(tally, &path, &empty.client.get(&path), 404, "test_not_found");
            }
            tally.section("scripted verdicts");
            match scene.project.name.as_str() {
                "Scripted verdicts" => scripted::verdicts(tally, scene, &verdicts),
                "Outage" => scripted::after_the_outage(tally, &verdicts),
                _ => {}
            }
        });
    });
}
