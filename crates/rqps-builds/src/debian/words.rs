//! Error messages of apt-get, and their meaning for the user.

use crate::client::{line_with, shortened};
use crate::error::Reason;
use rqps_model::build::Dbms;

/// Words about a signature that is missing, unknown, expired or wrong, the most telling first.
const SIGNATURE: [&str; 9] = [
    "NO_PUBKEY",
    "EXPKEYSIG",
    "REVKEYSIG",
    "BADSIG",
    "invalid signature",
    "signatures couldn't be verified",
    "signatures were invalid",
    "is not signed",
    "GPG error",
];

/// Words of a file that is not what the signed list says.
const CHANGED: [&str; 3] = ["Hash Sum mismatch", "File has unexpected size", "Size mismatch"];

/// Words by which apt says that it cannot reach a mirror.
const UNREACHABLE: [&str; 10] = [
    "Temporary failure resolving", "Could not resolve", "Could not connect", "Unable to connect",
    "Connection failed", "Connection refused", "Connection timed out", "Network is unreachable",
    "connection timed out", "Clearsigned file isn't valid",
];

/// Words about packages that the suite does not have.
const GONE: [&str; 3] =
    ["Unable to locate package", "has no installation candidate", "Couldn't find any package"];

/// The action.
pub(super) struct Context {
    pub(super) client: String,
    pub(super) suite: String,
    /// Packages, or the package list.
    pub(super) what: String,
    pub(super) dbms: Dbms,
    pub(super) mirror: String,
}

/// The line in which apt-get doubts a signature, if there is one: some versions only warn.
pub(super) fn warned_of_signature(said: &str) -> Option<String> {
    line_with(said, &SIGNATURE).map(shortened)
}

/// The reason why apt-get failed, by its English messages.
pub(super) fn classify(context: &Context, ended: &str, said: &str) -> Reason {
    let Context { client, suite, what, dbms, mirror } = context;
    let (client, dbms) = (client.clone(), *dbms);
    let with = |words: &[&str]| line_with(said, words).map(shortened);
    let no_release = said.lines().any(|line| {
        line.contains("does not have a Release file")
            || line.contains("no longer has a Release file")
    });
    // A mirror that cannot be reached has no Release file either.
    if let Some(said) = with(&UNREACHABLE) {
        return Reason::Network { client, said, dbms };
    }
    if no_release {
        return Reason::Build(format!(
            "the mirror {mirror} has no suite {suite} (any more): check its name; for a suite \
             moved to the archive, make the archive the mirror of this host's apt; or name an \
             installed tree with {dbms}=PATH"
        ));
    }
    if let Some(said) = with(&SIGNATURE) {
        return Reason::Build(format!(
            "apt does not trust the package list of Debian {suite}: {said}; rqps kept no files. \
             If this host's keys are older than the suite, update the Debian package \
             debian-archive-keyring; otherwise do not trust the mirror"
        ));
    }
    if let Some(said) = with(&GONE) {
        return Reason::Build(format!(
            "{said}: Debian {suite} has no such package for this machine (any more); name another \
             suite with {dbms}=deb:SUITE/PACKAGE, or an installed tree with {dbms}=PATH"
        ));
    }
    if said.contains("unmet dependencies") || said.contains("unmet dependency") {
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("Depends:")).collect();
        let said = shortened(&lines.join("; "));
        return Reason::Build(format!(
            "apt cannot resolve {what} of Debian {suite}: {said}; a suite in development can stay \
             in such a state for days: try again later, or another suite"
        ));
    }
    if let Some(said) = with(&CHANGED).or_else(|| with(&["404  Not Found"])) {
        return Reason::Build(format!(
            "the mirror of Debian {suite} does not match its package list: {said}; it is probably \
             updating: try again in a few minutes"
        ));
    }
    let last = said.lines().rev().find(|line| line.starts_with("E: "));
    let last = last.or_else(|| said.lines().last()).unwrap_or("no message");
    Reason::ClientFailed {
        client,
        ended: ended.to_string(),
        coordinates: format!("{what} of Debian {suite}"),
        said: shortened(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, words: &[&str]) {
        let context = Context {
            client: "apt-get".to_string(),
            suite: "trixie".to_string(),
            what: "mariadb-server-core".to_string(),
            dbms: Dbms::Mariadb,
            mirror: "http://mirror/debian/".to_string(),
        };
        let text = classify(&context, "exited with 100", said).to_string();
        for word in words {
            assert!(text.contains(word), "{word:?} is not in: {text}");
        }
    }

    #[test]
    fn the_words_of_apt_are_understood() {
        let release = "Err:2 http://mirror/debian trixy Release\n  404  Not Found\n\
                       E: The repository 'http://mirror/debian trixy Release' does not have a \
                       Release file.";
        check(release, &["trixie", "http://mirror/debian/", "no suite"]);
        let key = "W: GPG error: http://mirror/debian sid InRelease: The following signatures \
                   couldn't be verified because the public key is not available: NO_PUBKEY 6ED0E7\n\
                   E: The repository 'http://mirror/debian sid InRelease' is not signed.";
        check(key, &["NO_PUBKEY 6ED0E7", "debian-archive-keyring"]);
        check(
            "E: Unable to locate package mariadb-x",
            &["mariadb-x", "Debian trixie has no such package"],
        );
        let unmet = "The following packages have unmet dependencies:\n \
                     a : Depends: b (= 1) but it is not installable\nE: Unable to correct problems";
        check(unmet, &["a : Depends: b (= 1)"]);
        let refused = "Err:1 http://mirror/debian trixie InRelease\n  Could not connect to \
                       127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n\
                       E: The repository 'x' does not have a Release file.";
        check(refused, &["could not reach", "Connection refused"]);
        check("E: Failed to fetch http://m/a.deb  404  Not Found", &["again", "404"]);
        check("E: Failed to fetch http://m/a.deb  Hash Sum mismatch", &["again", "Hash Sum"]);
        check("E: Could not get lock", &["exited with 100", "Could not get lock"]);
        check("", &["no message"]);
    }

    #[test]
    fn a_warning_of_a_signature_is_heard() {
        let said = "W: An error occurred during the signature verification. GPG error: x: \
                    EXPKEYSIG 1234 Debian";
        assert!(warned_of_signature(said).is_some());
        assert_eq!(warned_of_signature("Reading package lists..."), None);
    }
}
