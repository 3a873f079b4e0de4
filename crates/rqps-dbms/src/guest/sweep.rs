//! Places that killed runs left on a server.

use crate::error::DbmsError;
use crate::guest::catalogue::{Catalogue, LockAnswer, own_name};
use crate::guest::claim::{Ownership, Theirs};
use crate::guest::owner::Guest;
use rqps_model::escape;

/// Removes the places that killed runs of this plan left, and reports those of other plans. Skips
/// places that a running rqps has locked, and only reports those that cannot be locked.
///
/// # Errors
/// The server does not answer. Its refusals become notes.
pub(crate) fn sweep(theirs: &Theirs<'_>, guest: &Guest) -> Result<Vec<String>, DbmsError> {
    let own = own_name(&guest.tag);
    let places = Ownership::on(theirs, own.clone())?.ask(Catalogue::places_of_rqps)?;
    let mut notes = Vec::new();
    for name in places.into_iter().filter(|name| *name != own) {
        // Places that this user cannot read are not this plan's.
        if let Ok(Some(note)) = swept(Ownership::on(theirs, name)?, guest) {
            notes.push(note);
        }
    }
    Ok(notes)
}

fn swept(mut claim: Ownership, guest: &Guest) -> Result<Option<String>, DbmsError> {
    let name = claim.lock_name();
    let answer = claim.ask(|catalogue, session| catalogue.try_lock(session, &name))?;
    if answer == LockAnswer::Held {
        return Ok(None);
    }
    if claim.check_sound().is_err() {
        return Ok(None);
    }
    claim.enter()?;
    let owned = claim.ledger().rows()?;
    let Some(first) = owned.iter().find(|row| !row.kept) else { return Ok(None) };
    let whose = format!("results in {} on {}, {}", first.results, first.host, first.made);
    let whose = escape::line(&whose);
    if first.plan != guest.plan {
        return Ok(Some(format!(
            "the {} is left over from another plan ({whose}); resume that plan to remove it, or \
             drop it manually",
            claim.words()
        )));
    }
    if answer == LockAnswer::Unknown {
        return Ok(Some(format!(
            "the {} is of this plan ({whose}); no lock says whether an rqps uses it: drop it \
             manually if none does",
            claim.words()
        )));
    }
    let tag = first.tag.clone();
    Ok(Some(match claim.release(&tag, false) {
        Ok(()) => format!("removed the {}, left over from this plan ({whose})", claim.words()),
        Err(error) => error.to_string(),
    }))
}
