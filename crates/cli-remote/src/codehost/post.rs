//! Keeps one comment on a pull request up to date.

use crate::codehost::{
    comment::Comment,
    host::{CodeHost, ExistingComment, PostError},
};

/// A state that is further ahead than this is none that a server wrote.
const AHEAD_MS: i64 = 600_000;
/// Most texts that a job posts while other jobs change the commit's state.
const MOST_ROUNDS: usize = 5;

/// What happened to the comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was written. On the edge to a probable breakage this replaces an earlier one, because no host tells people of an
    /// edited comment.
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
/// more, because another job may have created one at the same time; the oldest stays. A comment is deleted only after
/// the one that replaces it exists, and a comment that replaces others is never deleted in their favour.
pub fn post(host: &CodeHost, comment: &Comment) -> Result<Outcome, PostError> {
    let mut own = find(host, comment)?;
    if own.is_empty() && comment.clean {
        return Ok(Outcome::Silent);
    }
    let is_replaced = |existing: &ExistingComment| {
        !comment.is_older_than(&existing.body) && comment.begins_to_block(&existing.body)
    };
    if own.iter().all(is_replaced) {
        host.create(&comment.markdown)?;
        for replaced in own {
            delete(host, replaced.id)?;
        }
        own = find(host, comment)?;
        if own.len() <= 1 {
            return Ok(Outcome::Created);
        }
    }
    let kept = own
        .iter()
        .position(|existing| !is_replaced(existing))
        .unwrap_or(0);
    let mut earlier = None;
    for (place, existing) in own.into_iter().enumerate() {
        if place == kept {
            earlier = Some(existing);
        } else {
            delete(host, existing.id)?;
        }
    }
    let Some(earlier) = earlier else {
        return Ok(Outcome::Created);
    };
    if let Some(kept) = comment.reason_to_keep(&earlier.body) {
        return Ok(kept);
    }
    host.edit(earlier.id, &comment.markdown)?;
    Ok(Outcome::Edited)
}

fn delete(host: &CodeHost, id: u64) -> Result<(), PostError> {
    match host.delete(id) {
        // Another job deleted it.
        Err(PostError::Forbidden { status: 404, .. }) => Ok(()),
        done => done,
    }
}

/// Writes a text, then asks for it again until nothing changed since. No code host replaces a text only if it still has a
/// certain state. Without the question, a slow job could replace the text of a later one for ever.
pub fn write_until_current<E>(
    first: Comment,
    mut write: impl FnMut(&Comment) -> Result<Outcome, E>,
    mut compose: impl FnMut() -> Result<Comment, E>,
) -> Result<Outcome, E> {
    let mut outcome = write(&first)?;
    let mut written = first;
    for _ in 1..MOST_ROUNDS {
        let has_written = matches!(outcome, Outcome::Created | Outcome::Edited);
        if !has_written {
            break;
        }
        let current = compose()?;
        if current.says_the_same_as(&written.markdown) {
            break;
        }
        let next = write(&current)?;
        if next == Outcome::Newer {
            break;
        }
        outcome = next;
        written = current;
    }
    Ok(outcome)
}

/// The comments of this project, oldest first, on the first page that has one.
fn find(host: &CodeHost, comment: &Comment) -> Result<Vec<ExistingComment>, PostError> {
    let is_own = |existing: &ExistingComment| {
        let state = comment.state_of(&existing.body);
        state.is_some_and(|state| state <= comment.state.saturating_add(AHEAD_MS))
    };
    let own = host.find_comment(|mut comments| {
        comments.retain(is_own);
        comments.sort_unstable_by_key(|existing| existing.id);
        (!comments.is_empty()).then_some(comments)
    });
    Ok(own?.unwrap_or_default())
}
