//! The question before a plan of others runs: its whole effect at once, each part with its hash; and
//! prompts for passwords.
//!
//! What was accepted, and what the user has put together on a command line of this host, is
//! remembered in the state folder by one hash of all of it. So a plan that `rqps plan` wrote, or a
//! result folder to resume, raises no question on the host of its author.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::cli::args::Folders;
use crate::cli::effect::{Effect, shown};
use crate::cli::folders;
use rqps_dbms as dbms;
use rqps_dbms::UserConfigs;
use rqps_host::beneath::{self, Folder};
use rqps_lab::lab::Accepted;
use rqps_lab::plan::{Plan, words};
use rqps_model::build::{BuildSource, Target};
use rqps_model::dialect::Dialect;
use rqps_model::{bounded, escape, safe_path};
use rqps_results::bundle::BundledTarget;
use rqps_wire::WireError;
use rqps_wire::dsn::Dsn;
use rqps_wire::mysql::MysqlClient;
use rqps_wire::password::{self, TypedPasswords};
use rqps_wire::postgres::PostgresClient;

/// What the user has accepted, as it was then.
#[derive(Clone, Debug, Default)]
pub(super) struct Consent {
    /// Settings that are files.
    pub configs: UserConfigs,
    /// Builds and files that must not change any more.
    pub accepted: Accepted,
}

/// Where a plan is from.
pub(super) struct Origin<'a> {
    /// The file or folder that the user named.
    pub file: &'a Path,
    /// The hash that the user allows.
    pub allow: Option<&'a str>,
    /// The targets of the bundle that it is from.
    pub bundle: Option<&'a [BundledTarget]>,
    /// True if it brings the folder of its settings.
    pub brings_configs: bool,
}

/// Remembers a plan that the user put together on this command line.
///
/// # Errors
/// The settings cannot be read.
pub(super) fn own(plan: &Plan, folders: &Folders) -> Result<Consent> {
    let configs = read_configs(plan, folders)?;
    let effect = Effect::of(plan, settings(&configs, folders, false), None);
    remember(&effect, effect.named(), "`rqps run` will ask before it runs this plan");
    Ok(Consent { configs, accepted: Accepted::default() })
}

/// Asks before a plan runs that this host has not seen. It may use nothing before that.
///
/// # Errors
/// The answer is no, or standard input is no terminal and the user does not allow it by its hash.
pub(super) fn ask(plan: &Plan, origin: &Origin<'_>, folders: &Folders) -> Result<Consent> {
    let configs = read_configs(plan, folders)?;
    let own = settings(&configs, folders, origin.brings_configs);
    let accepted = accept(Effect::of(plan, own, origin.bundle), origin)?;
    if origin.bundle.is_some() {
        // Who resumes the repetition has its folder, not the bundle: no shipped settings are known.
        let mut resumed = Effect::of(plan, own, None);
        resumed.read(None)?;
        remember(&resumed, resumed.whole(), "resuming will need --allow");
    }
    Ok(Consent { configs, accepted })
}

/// Asks before something of this effect happens, unless it is known.
///
/// # Errors
/// As [`ask`].
pub(super) fn accept(mut effect: Effect, origin: &Origin<'_>) -> Result<Accepted> {
    if effect.is_empty() {
        return Ok(Accepted::default());
    }
    let known = known().context("read which plans were accepted on this host")?;
    if known.contains(&effect.named()) {
        return Ok(Accepted::default());
    }
    let accepted = effect.read(origin.bundle)?;
    let hash = effect.whole();
    if known.contains(&hash) {
        return Ok(accepted);
    }
    let file = shown(&origin.file.display().to_string());
    let what = format!("is new on this host. It would use:{}", effect.list());
    match origin.allow {
        Some(allowed) if allowed == hash => info!("rqps: {file} {what}\nAllowed by --allow {hash}"),
        Some(_) => bail!(
            "run {file}: it {what}\nIts hash is not the one that --allow names\n\
             hint: read it again, then add --allow {hash}"
        ),
        None if io::stdin().is_terminal() => {
            let rights =
                "Programs, libraries, scripts and settings may do whatever their user may.";
            if !confirm(&format!("rqps: {file} {what}\n{rights}\nAll of it: {hash}\nRun it?"))? {
                bail!("run {file}: not confirmed");
            }
        }
        None => bail!("run {file}: it {what}\nhint: read it, then add --allow {hash}"),
    }
    remember(&effect, hash, "resuming will need --allow again");
    Ok(accepted)
}

/// Keeps the hash of an effect, or says what follows if that fails.
fn remember(effect: &Effect, hash: String, otherwise: &str) {
    if let Err(error) = keep(effect, hash) {
        info!("rqps: {error:#}; {otherwise}");
    }
}

/// Asks and reads the answer. Anything but `y`, `Y` and `yes` is a no.
///
/// # Errors
///
/// Standard input cannot be read.
pub(super) fn confirm(question: &str) -> Result<bool> {
    error!("{question} [y/N]");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The settings that belong to the effect: those of a folder that the user did not name.
fn settings<'a>(
    configs: &'a UserConfigs,
    folders: &Folders,
    brings_configs: bool,
) -> Option<&'a UserConfigs> {
    (brings_configs || folders.configs.is_none()).then_some(configs)
}

/// Reads the settings of a plan that are files. From a folder that the user did not name come only
/// those that a target names; the default settings are the shipped ones then.
fn read_configs(plan: &Plan, folders: &Folders) -> Result<UserConfigs> {
    let folder = folders::configs(folders.configs.as_deref())?;
    let mut configs = UserConfigs::of(folder);
    for target in &plan.targets {
        let (dbms, name) = (target.dbms, target.config.as_str());
        if folders.configs.is_none() && words::has_default_config(target) {
            tell_unused(target, &configs);
            continue;
        }
        let doing = || format!("configure {}", target.label);
        if configs.read(dbms, name).with_context(doing)?
            && folders.configs.is_none()
            && let Some(config) = configs.get(dbms, name)
            && !dbms::config::is_shipped_file(dbms, &config.name, &config.text)
        {
            info!("rqps: {} has the settings in {}", target.label, config.path.display());
        }
    }
    Ok(configs)
}

/// Tells that a file with default settings in the current folder is not used.
fn tell_unused(target: &Target, configs: &UserConfigs) {
    let files = configs.files(target.dbms, &target.config).into_iter();
    let read = |file: PathBuf| Some((bounded::text(&file, bounded::WRITTEN_MAX).ok()?, file));
    let Some((text, file)) = files.filter_map(read).next() else { return };
    if !dbms::config::is_shipped_file(target.dbms, &target.config, &text) {
        info!(
            "rqps: {} has the settings that rqps ships, not those in {}\nhint: to use that file, \
             add --configs {}",
            target.label,
            file.display(),
            folders::CONFIGS
        );
    }
}

/// The hashes of all that was put together or accepted before.
fn known() -> io::Result<BTreeSet<String>> {
    let Some(path) = folders::known_plans() else { return Ok(BTreeSet::new()) };
    let above = path.parent().unwrap_or(&path);
    // What another user has put there was not accepted by this one.
    let read = Folder::open(above).and_then(|folder| {
        folder.check_own()?;
        folder.text_of(path.file_name().unwrap_or_default(), None, bounded::WRITTEN_MAX)
    });
    match read {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// Appends a hash that is not known yet. Does nothing if there is no home folder.
fn keep(effect: &Effect, hash: String) -> Result<()> {
    let Some(path) = folders::known_plans().filter(|_| !effect.is_empty()) else {
        return Ok(());
    };
    let doing = || format!("remember a plan in {}", path.display());
    if let Some(folder) = path.parent() {
        safe_path::make_folder(folder).with_context(doing)?;
    }
    if known().with_context(doing)?.contains(&hash) {
        return Ok(());
    }
    // One write, so that lines of two programs do not mix.
    let mut file = beneath::to_append(&path).with_context(doing)?;
    file.write_all(format!("{hash}\n").as_bytes()).with_context(doing)
}

// Prompts on the terminal, without echo, for a password that no file and no variable has.

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Prompts for each password that a server of the plan requires and no file or variable has.
/// Returns them by DSN. Without a terminal it does not prompt, and the runs fail with a message.
///
/// # Errors
/// The terminal cannot be used.
pub(super) fn of_plan(plan: &Plan) -> Result<TypedPasswords> {
    let mut passwords = TypedPasswords::default();
    let Ok(mut terminal) = open_terminal() else { return Ok(passwords) };
    for target in &plan.targets {
        let BuildSource::Dsn(text) = &target.source else { continue };
        // A wrong DSN is reported when it is measured.
        let Ok(known) = password::known(text, &folders::variable) else { continue };
        if passwords.of(text).is_none()
            && let Some(password) = ask_for(&known.dsn, &mut terminal)?
        {
            passwords.add(text, password);
        }
    }
    Ok(passwords)
}

/// Prompts for the password of one server.
///
/// # Errors
///
/// The terminal cannot be used.
pub(super) fn of_server(dsn: &mut Dsn) -> Result<()> {
    let Ok(mut terminal) = open_terminal() else { return Ok(()) };
    if let Some(password) = ask_for(dsn, &mut terminal)? {
        dsn.login.password = password;
    }
    Ok(())
}

fn open_terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Prompts if the server requires a password.
fn ask_for(dsn: &Dsn, terminal: &mut File) -> Result<Option<String>> {
    let (address, login) = (&dsn.address, &dsn.login);
    if !login.password.is_empty() {
        return Ok(None);
    }
    let tried = match dsn.dialect() {
        Dialect::Mysql => MysqlClient::connect(address, login, CONNECT).map(drop),
        _ => PostgresClient::connect(address, login, CONNECT).map(drop),
    };
    match tried {
        Err(WireError::NoPassword { .. }) => {
            let prompt = format!("Password for user {} at {address}: ", login.user);
            let prompt = escape::line(&prompt);
            typed(terminal, &prompt).context("ask for a password on the terminal")
        }
        // Any other fault is reported when the server is measured.
        Ok(()) | Err(_) => Ok(None),
    }
}

/// Reads a line without echo; `None` if it is empty.
fn typed(terminal: &mut File, prompt: &str) -> io::Result<Option<String>> {
    let quiet = Quiet::begin(terminal)?;
    terminal.write_all(prompt.as_bytes())?;
    let line = line(&mut &quiet.terminal);
    drop(quiet);
    terminal.write_all(b"\n")?;
    Ok(Some(line?).filter(|line| !line.is_empty()))
}

/// Reads a line byte by byte, so that the input after it stays for the next reader.
fn line(keys: &mut dyn Read) -> io::Result<String> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    const BACKSPACE: u8 = 8;
    const KILL: u8 = 21;
    const DELETE: u8 = 127;
    let mut line = Vec::new();
    let mut byte = [0];
    while keys.read(&mut byte)? == 1 {
        match byte[0] {
            b'\n' | b'\r' | END => break,
            INTERRUPT => return Err(io::Error::other("interrupted")),
            // A letter may have several bytes; all but its first begin with the bits 10.
            BACKSPACE | DELETE => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            KILL => line.clear(),
            other => line.push(other),
        }
    }
    String::from_utf8(line)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// A terminal without echo until this value is dropped.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn begin(terminal: &File) -> io::Result<Quiet> {
        let terminal = terminal.try_clone()?;
        let before = tcgetattr(&terminal)?;
        let mut quiet = before.clone();
        // Signals are off too: one that ended rqps here would leave the terminal without echo.
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Flush, &quiet)?;
        Ok(Quiet { terminal, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // The terminal is gone, so there is no place to report it.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_corrected() {
        let check = |keys: &[u8], wanted: &str| {
            assert_eq!(line(&mut &*keys).expect("a line"), wanted, "{keys:?}");
        };
        check(b"secret\nrest", "secret");
        check(b"no\x15yes\r", "yes");
        check("aé\x7fb\n".as_bytes(), "ab");
        check(b"\x08\x04", "");
        let error = line(&mut &b"x\x03"[..]).expect_err("interrupted");
        assert_eq!(error.to_string(), "interrupted");
    }
}
