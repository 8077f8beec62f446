//! What is read of a request, before it is known what it asks for.

mod id;
mod query;
pub(crate) mod text;

use actix_web::{
    HttpRequest,
    http::header::{AcceptEncoding, EntityTag, Header, IfNoneMatch},
};

pub(crate) use self::{id::RequestId, query::Query, text::Pairs};
use crate::{encoding::Coding, routes::BASE};

/// What a request asks for, owned, so that it can go to another thread.
pub(crate) struct Ask {
    /// The path as it was sent: actix-web decodes invalid UTF-8 to U+FFFD, which could name something else.
    path: String,
    pub(crate) query: Pairs,
    accepted: Option<AcceptEncoding>,
    known: Option<IfNoneMatch>,
}

impl Ask {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self {
            path: request.uri().path().to_owned(),
            query: Pairs::of(request.uri().query().unwrap_or_default()),
            accepted: sent(request),
            known: sent(request),
        }
    }

    /// The content coding of a body that is worth one.
    pub(crate) fn coding(&self) -> Coding {
        self.accepted.as_ref().map_or(Coding::Identity, Coding::negotiate)
    }

    /// The decoded segment that stands where `route` has `name`; nothing where it is not text.
    pub(crate) fn segment(&self, route: &str, name: &str) -> Option<String> {
        let depth = BASE.matches('/').count();
        let segments = self.path.split('/').skip(1 + depth);
        let (_, raw) = route
            .split('/')
            .skip(1)
            .zip(segments)
            .find(|(pattern, _)| *pattern == name)?;
        text::decode(raw)
    }

    /// Whether the client has the version of this strong tag. The comparison is the weak one, as for a GET.
    pub(crate) fn has_version(&self, tag: &str) -> bool {
        match &self.known {
            Some(IfNoneMatch::Any) => true,
            Some(IfNoneMatch::Items(tags)) => {
                let ours = EntityTag::new_strong(tag.to_owned());
                tags.iter().any(|theirs| theirs.weak_eq(&ours))
            }
            None => false,
        }
    }
}

/// A header that was sent and makes sense.
fn sent<H: Header>(request: &HttpRequest) -> Option<H> {
    if request.headers().contains_key(H::name()) {
        H::parse(request).ok()
    } else {
        None
    }
}
