//! Keeps one comment on a pull request up to date.

use crate::{
    comment::Comment,
    host::{CodeHost, ExistingComment, PostError},
};

/// Most pages of comments that are searched for the own one.
const MOST_PAGES: u32 = 20;
/// A state that is further ahead than this is none that a server wrote.
const AHEAD_MS: i64 = 600_000;
/// Most texts that a job posts while other jobs change the commit's state.
const MOST_ROUNDS: usize = 5;

/// What happened to the comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was written.
    Created,
    /// It was brought up to date.
    Edited,
    /// It says the same already.
    Unchanged,
    /// It has a newer state, which stays.
    Newer,
    /// There is none, because there is nothing to say.
    Silent,
}

/// Posts a comment: one request to find the earlier one, and one to write. A job that creates the comment searches once
/// more, because another job may have created one at the same time; the oldest stays.
pub fn post<H: CodeHost>(host: &H, comment: &Comment) -> Result<Outcome, PostError> {
    let mut own = find(host, comment)?;
    if own.is_empty() {
        if comment.clean {
            return Ok(Outcome::Silent);
        }
        host.create(&comment.markdown)?;
        own = find(host, comment)?;
        if own.len() <= 1 {
            return Ok(Outcome::Created);
        }
    }
    let mut own = own.into_iter();
    let Some(oldest) = own.next() else {
        return Ok(Outcome::Created);
    };
    for duplicate in own {
        match host.delete(duplicate.id) {
            // Another job deleted it.
            Ok(()) | Err(PostError::Forbidden { status: 404, .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if comment.says_the_same_as(&oldest.body) {
        return Ok(Outcome::Unchanged);
    }
    if comment
        .state_of(&oldest.body)
        .is_some_and(|state| state > comment.state)
    {
        return Ok(Outcome::Newer);
    }
    host.edit(oldest.id, &comment.markdown)?;
    Ok(Outcome::Edited)
}

/// Posts a comment, then asks for the text again until nothing changed since. No code host replaces a comment only if it
/// still has a certain state. Without the question, a slow job could replace the text of a later one for ever.
pub fn post_until_current<H: CodeHost, E: From<PostError>>(
    host: &H,
    comment: Comment,
    mut compose: impl FnMut() -> Result<Comment, E>,
) -> Result<Outcome, E> {
    let mut outcome = post(host, &comment)?;
    let mut posted = comment;
    for _ in 1..MOST_ROUNDS {
        let has_written = matches!(outcome, Outcome::Created | Outcome::Edited);
        if !has_written {
            break;
        }
        let current = compose()?;
        if current.says_the_same_as(&posted.markdown) {
            break;
        }
        let next = post(host, &current)?;
        if next == Outcome::Newer {
            break;
        }
        outcome = next;
        posted = current;
    }
    Ok(outcome)
}

/// The comments of this project, oldest first, on the first page that has one.
fn find<H: CodeHost>(host: &H, comment: &Comment) -> Result<Vec<ExistingComment>, PostError> {
    for page in 1..=MOST_PAGES {
        let (comments, on_page) = host.page(page)?;
        let is_own = |existing: &ExistingComment| {
            let state = comment.state_of(&existing.body);
            state.is_some_and(|state| state <= comment.state.saturating_add(AHEAD_MS))
        };
        let mut own: Vec<ExistingComment> = comments.into_iter().filter(is_own).collect();
        if !own.is_empty() || on_page < H::PER_PAGE {
            own.sort_unstable_by_key(|existing| existing.id);
            return Ok(own);
        }
    }
    Ok(Vec::new())
}
