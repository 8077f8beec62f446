//! Signing in at a provider of OpenID Connect, and out.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
};
use assay_access::{
    check::PresentedKey,
    session::{BegunSignIn, PersonAccess, Session},
};
use assay_domain::{
    identity::{Person, SignInError},
    key::{self, KeyHash},
    project::Caller,
};
use assay_http::{Pairs, Problem};

use crate::{
    Front, body, cookies, error::FrontError, is_own_address, layout, links, see_other, set_cookie,
    sign_in::count_address,
};

/// Longest code that a provider sends.
const CODE_BYTES: usize = 4_096;

impl Front {
    /// Sends the browser to a provider.
    pub(crate) async fn begin_at_provider(&self, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
        let query = query_of(request)?;
        let now = (self.clock)();
        let providers = self.providers.clone().ok_or(FrontError::NoSuchPage)?;
        let place = query.first("n").and_then(|place| place.parse().ok());
        let place = place.filter(|place: &usize| *place < providers.providers().len());
        let place = place.ok_or(FrontError::NoSuchPage)?;
        let next = query.first("next").filter(|next| is_own_address(next));
        let is_silent = query.first("silent").is_some();
        let (attempt, cookie) = self.sessions.begin_sign_in((place, is_silent), next, now)?;
        let asking = move || providers.authorization_url(&attempt, now);
        let address = self.asks.run(place, asking).await.map_err(Problem::from)??;
        let mut response = see_other(&address);
        set_cookie(&mut response, &cookie);
        Ok(response)
    }

    /// Signs in a person whom a provider has sent back.
    pub(crate) async fn return_from_provider(
        &self,
        request: &HttpRequest,
    ) -> Result<HttpResponse, FrontError> {
        let query = query_of(request)?;
        let now = (self.clock)();
        let providers = self.providers.clone().ok_or(FrontError::NoSuchPage)?;
        let begun = cookies(request).and_then(|header| self.sessions.begun_sign_in(header, now));
        let BegunSignIn { attempt, next, .. } = begun
            .filter(|begun| query.first("state") == Some(&*begun.attempt.state))
            .ok_or(FrontError::NoSignInBegun)?;
        let code = query.first("code").filter(|code| code.len() <= CODE_BYTES);
        let mut response = match code {
            // The provider would have had to ask the person, which a page in use does not.
            None if attempt.is_silent => {
                see_other(&links::with_query("/login", &[("next", next.as_deref())]))
            }
            None => return Err(FrontError::NotSignedIn),
            Some(code) => {
                count_address(&self.returns, request, now)?;
                let (place, code) = (attempt.provider, code.to_owned());
                let issuer = query.first("iss").map(str::to_owned);
                let redeeming = move || providers.redeem(&attempt, &code, issuer.as_deref(), now);
                let person = self.asks.run(place, redeeming).await.map_err(Problem::from)??;
                let (key, access) = self.access_of(place, person).await?;
                let cookie = self.sessions.cookie(key, Some(access), now)?;
                let page = layout::forward(next.as_deref().unwrap_or("/"), "Signed in");
                let mut response = body(page, StatusCode::OK, request)?;
                set_cookie(&mut response, &cookie);
                response
            }
        };
        set_cookie(&mut response, &self.sessions.ended_sign_in());
        Ok(response)
    }

    /// Where the browser ends the session at the provider, if the session is of one that has such an address.
    pub(crate) fn end_at_provider(&self, session: Option<&Session>) -> Option<String> {
        let person = session?.person.as_ref()?;
        self.providers.as_ref()?.end_session_url(person.provider)
    }

    /// The rights that a person's claims name, with the hash of the person who has them. The organization must exist.
    pub(crate) async fn access_of(
        &self,
        provider: usize,
        person: Person,
    ) -> Result<(KeyHash, PersonAccess), FrontError> {
        let front = self.clone();
        // The look-up has a share of its own, because the organization of the person is not known yet.
        let share = PresentedKey::of_hash(key::hash(person.subject.as_bytes()));
        let finding = move || -> Result<_, FrontError> {
            let keys = front.reception.directory().store();
            let organization = keys.organization_named(&person.organization)?;
            let organization = organization.ok_or(SignInError::NoAccess)?;
            let projects = match (person.projects, keys.plan(organization)?) {
                (Some(names), Some(plan)) => {
                    let only = None;
                    let mut projects = front.store.projects(&Caller {
                        organization,
                        plan,
                        only,
                    })?;
                    projects.retain(|project| names.contains(&project.name));
                    Some(projects.iter().map(|project| project.id).collect())
                }
                (Some(_), None) | (None, _) => None,
            };
            let access = PersonAccess {
                provider,
                organization,
                projects,
            };
            Ok((PresentedKey::person_hash(&person.subject, &access), access))
        };
        self.reception.run(&share, finding).await.map_err(Problem::from)?
    }
}

fn query_of(request: &HttpRequest) -> Result<Pairs, FrontError> {
    match *request.method() {
        Method::GET => Ok(Pairs::of(request.query_string())),
        _ => Err(FrontError::NoSuchMethod),
    }
}
