//! `rqps bisect`, `rqps gap` and `rqps find-rate`: searches that measure, judge and decide in a loop,
//! in a folder of their own, until they know.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args, ValueEnum};

use crate::cli::args::{Compare, Folders, RuleOptions};
use crate::cli::folders::{self, execution_options, valgrind};
use crate::cli::measure::plan_of;
use crate::cli::parts::{SittingArgs, WorkloadArgs};
use crate::cli::questions::{self, Origin};
use crate::cli::terminal::{self, Display};
use crate::cli::{builds, exit, gate, hosts, own_workload};
use rqps_analysis::calibration::layout_noise;
use rqps_builds::catalogue::kept_releases;
use rqps_host::host;
use rqps_lab::campaign::best_rate;
use rqps_lab::campaign::bisect::{bisect, searched, versions};
use rqps_lab::campaign::gap::close as close_gap;
use rqps_lab::lab::{self, Event, ExecutionOptions};
use rqps_lab::plan::{Interleave, Plan, PlanDraft, file, words};
use rqps_model::benchmark::{Pace, Phase};
use rqps_model::bisection::{BisectedVersion, BisectionRequest, GapRequest, RateRequest};
use rqps_model::build::{BuildSource, Dbms, Target};
use rqps_model::host::fingerprint;
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_report::{
    best_rate_json, best_rate_text, bisection_document, bisection_json, gap_html, gap_json,
    gap_text, render_markdown, render_text,
};
use rqps_results as results;
use rqps_results::{BisectionFolder, GapFolder, RateFolder};

/// `rqps bisect`.
pub(super) fn search(words: &BisectArgs) -> Result<u8> {
    let folder = match &words.resume {
        Some(path) => BisectionFolder::open(path)
            .context("resume a bisection; name the folder that the interrupted command printed")?,
        None => begin(words)?,
    };
    let plan = file::parse(&folder.log().request.plan).context("use the plan of the bisection")?;
    own_workload::check_files(&plan)?;
    let out = folder.path().to_owned();
    own_workload::refuse_programs(&plan)?;
    let versions = &folder.log().request.versions;
    let targets = versions.iter().map(|version| version.target.clone()).collect();
    let all = Plan::build(PlanDraft { targets, ..plan.draft() })?;
    let resumed = words.resume.as_ref().map(|_| words.allow.as_deref());
    let options = ExecutionOptions {
        // Without valgrind, rates decide.
        valgrind: valgrind().ok(),
        ..options(plan, &all, &out, resumed, &words.folders)?
    };
    let search = |show: &mut dyn FnMut(Event)| bisect(&options, folder, show);
    let Some(found) = found("bisect", "bisect", &out, search)? else {
        return Ok(exit::INTERRUPTED);
    };
    let text = match words.format {
        BisectFormat::Text => render_text(&bisection_document(&found), terminal::columns()),
        BisectFormat::Markdown => render_markdown(&bisection_document(&found)),
        BisectFormat::Json => bisection_json(&found)?,
    };
    terminal::escaped(text.as_bytes())?;
    Ok(exit::FINE)
}

/// The options of measurements in the folder `out`, once the user has agreed to what `all` may
/// use. `resumed` is what the command line allows, if the folder was there before.
fn options(
    plan: Plan,
    all: &Plan,
    out: &Path,
    resumed: Option<Option<&str>>,
    said: &Folders,
) -> Result<ExecutionOptions> {
    let consent = match resumed {
        Some(allow) => {
            let origin = Origin { file: out, allow, bundle: None, brings_configs: false };
            questions::ask(all, &origin, said)?
        }
        None => questions::own(all, said)?,
    };
    Ok(ExecutionOptions {
        cache: folders::cache(said.cache.cache.as_deref()),
        configs: consent.configs,
        accepted: consent.accepted,
        ignores_space: said.yes_disk,
        wait: said.wait,
        work: said.work.clone(),
        debug_folders: folders::debug(&said.debug)?,
        ..execution_options(plan, out.to_owned())?
    })
}

/// The options of a campaign in the folder `out`, by the plan of its log. A resumed one asks about
/// what it would use.
fn options_of(
    plan: &str,
    out: &Path,
    resumed: Option<Option<&str>>,
    (targets, said): (&[String], &Folders),
) -> Result<ExecutionOptions> {
    let plan = file::parse(plan).context("use the plan of the folder")?;
    let plan = with_passwords(plan, targets)?;
    own_workload::check_files(&plan)?;
    own_workload::refuse_programs(&plan)?;
    options(plan.clone(), &plan, out, resumed, said)
}

/// The plan with the passwords in the words of its targets, which no folder keeps.
fn with_passwords(plan: Plan, words: &[String]) -> Result<Plan> {
    if words.is_empty() {
        return Ok(plan);
    }
    let said = words::targets(&builds::targets(words)?)?;
    let mut draft = plan.draft();
    for target in &mut draft.targets {
        let of_server = |other: &&Target| matches!(other.source, BuildSource::Dsn(_));
        let own = said.iter().find(|other| other.label == target.label).filter(of_server);
        if let Some(own) = own {
            target.source = own.source.clone();
        }
    }
    Ok(Plan::build(draft)?)
}

/// The folder of a new bisection.
fn begin(words: &BisectArgs) -> Result<BisectionFolder> {
    let rules = gate::rules(&[], &words.rules)?;
    let metric = words.metric.as_deref().map(metric).transpose()?;
    if let [only] = words.targets.as_slice()
        && !only.contains("..")
    {
        bail!(
            "bisect: {only} is one target, and a bisection needs the older and the newer end\n\
             hint: rqps bisect DBMS@OLD DBMS@NEW --step NAME; `rqps builds` lists the versions. For \
             commits, in the sources: rqps bisect HEAD~9 HEAD --step NAME"
        );
    }
    let Some(step) = words.step.clone() else {
        bail!(
            "bisect: name the step that changed with --step NAME\nhint: `rqps compare` of both ends \
             shows which it is; `rqps plan` lists the steps"
        );
    };
    let cache = lab::open_cache(&folders::cache(words.folders.cache.cache.as_deref()))?;
    let known = |dbms| kept_releases(dbms, &cache);
    let versions = versions(&words::targets(&words.target_words()?)?, &known)?;
    info!("rqps: {} versions", versions.len());
    let all: Vec<String> = versions.iter().map(|version| words::word(&version.target)).collect();
    // All versions must be able to run the step; the plan keeps the two ends.
    let plan = plan_of_step(&all, &words.shape, &step, "rqps bisect")?;
    let versions = versions.into_iter().zip(&plan.targets);
    let versions: Vec<_> = versions
        .map(|(version, target)| BisectedVersion { target: target.clone(), ..version })
        .collect();
    let [first, .., last] = versions.as_slice() else {
        bail!("bisect: name the baseline and the candidate");
    };
    let tau = match words.rules.tau {
        None => tau(&plan.targets, &words.folders, words.rules.delta)?,
        Some(_) => None,
    };
    let rules = Rules { tau: tau.map_or(rules.tau, f64::ln_1p), ..rules };
    let ends = vec![first.target.clone(), last.target.clone()];
    let plan = Plan::build(PlanDraft { targets: ends, ..plan.draft() })?;
    let out = out_of(&words.folders, &plan);
    let request = BisectionRequest { plan: file::print(&plan)?, step, metric, versions, rules };
    Ok(BisectionFolder::create(&out, request)?)
}

/// The plan of a search in one step of these targets.
fn plan_of_step(
    targets: &[String],
    shape: &WorkloadArgs,
    step: &str,
    command: &str,
) -> Result<Plan> {
    let shape = WorkloadArgs { steps: vec![step.to_owned()], ..shape.clone() };
    plan_with_step(targets, &shape, step, command)
}

/// The plan of a search in steps of these targets, among them this one.
fn plan_with_step(
    targets: &[String],
    shape: &WorkloadArgs,
    step: &str,
    command: &str,
) -> Result<Plan> {
    let shape = WorkloadArgs { sittings: SittingArgs::default(), ..shape.clone() };
    let plan = plan_of(&builds::targets(targets)?, &shape)?;
    hosts::refuse_server(&plan, command)?;
    check_step(&plan, step)?;
    Ok(plan)
}

/// The folder of a new search.
fn out_of(said: &Folders, plan: &Plan) -> PathBuf {
    let labels: Vec<String> = plan.targets.iter().map(|target| target.label.clone()).collect();
    folders::results(said.out.as_deref(), &labels)
}

/// What a search found, and where its results are; `None` if the user stopped it.
fn found<Found>(
    command: &str,
    doing: &str,
    out: &Path,
    search: impl FnOnce(&mut dyn FnMut(Event)) -> Result<Option<Found>>,
) -> Result<Option<Found>> {
    let mut display = Display::new();
    let end = search(&mut |event| display.show(event));
    drop(display);
    let found = end.with_context(|| format!("{doing} ({})", out.display()))?;
    match found {
        Some(_) => info!("rqps: results are in {}", out.display()),
        None => info!(
            "rqps: stopped; the results so far are in {}\nhint: resume with `rqps {command} \
             --resume {}`",
            out.display(),
            folders::resume_words(out)
        ),
    }
    Ok(found)
}

/// Refuses a word that is not the name of exactly one measured step.
fn check_step(plan: &Plan, step: &str) -> Result<()> {
    let Some(target) = plan.targets.first() else { bail!("measure the step {step}: no target") };
    let phases = plan.phases(target)?;
    let names: Vec<&str> = phases
        .iter()
        .filter_map(|phase| match phase {
            Phase::Measure(step) if step.reported => Some(step.name.as_str()),
            _ => None,
        })
        .collect();
    if !names.contains(&step) {
        bail!("measure the step `{step}`: name one of {}", names.join(", "));
    }
    Ok(())
}

/// The metric of this name that a search can use.
fn metric(name: &str) -> Result<Metric> {
    match searched().find(|metric| metric.name() == name) {
        Some(metric) => Ok(metric),
        None => {
            let names: Vec<&str> = searched().map(|metric| metric.name()).collect();
            bail!("search by `{name}`: write one of {}", names.join(", "))
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct BisectArgs {
    /// Baseline and candidate: two releases of a DBMS, between which `rqps builds` knows others; in
    /// its sources two commits (HEAD~9 HEAD); or three or more targets in their order
    #[arg(value_name = "TARGET", required_unless_present_any = ["resume", "repo"])]
    pub targets: Vec<String>,
    /// Git repository whose commits to search, instead of targets
    #[arg(long, value_name = "DIR", conflicts_with = "targets",
          requires_all = ["good", "bad", "recipe"])]
    pub repo: Option<PathBuf>,
    /// The older commit, which is still fast
    #[arg(long, value_name = "REF", requires = "repo")]
    pub good: Option<String>,
    /// The newer commit, which is slow
    #[arg(long, value_name = "REF", requires = "repo")]
    pub bad: Option<String>,
    /// DBMS that the repository has the sources of, and a variant: sqlite, postgres+O3,
    /// postgres+recipe=./build.sh (docs/builds.md)
    #[arg(long, value_name = "DBMS+VARIANT", requires = "repo")]
    pub recipe: Option<String>,
    /// Step that changed
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Metric to search by: instr/o or instr_bg/o (instructions per operation of the thread that
    /// works, or of all others), o/s (operations per second), server_cpu_us/o or client_cpu_us/o
    /// (microseconds of CPU per operation) [default: the one that shows the difference best; the
    /// result names it]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Resume the interrupted bisection in this folder
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["targets", "repo", "step", "metric", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: measure a bisection that is new on this host if all that it would use has
    /// this hash
    #[arg(long, value_name = "HASH", requires = "resume")]
    pub allow: Option<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: BisectFormat,
}

impl BisectArgs {
    /// The words of the targets, those of two commits among them.
    fn target_words(&self) -> Result<Vec<String>> {
        let (Some(repository), Some(recipe)) = (&self.repo, &self.recipe) else {
            return builds::targets(&self.targets);
        };
        let (dbms, variant) = recipe.split_once('+').unwrap_or((recipe, ""));
        let plus = if variant.is_empty() { "" } else { "+" };
        let ends = [&self.good, &self.bad].into_iter().flatten();
        let word = |end| format!("{dbms}=src:{}@{end}{plus}{variant}", repository.display());
        Ok(ends.map(word).collect())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BisectFormat {
    Text,
    Markdown,
    Json,
}

/// Hides the options of workloads that a bisection decides itself.
pub(super) fn hide_options_without_effect(arg: Arg) -> Arg {
    let own = [
        "steps", "blocks", "min_blocks", "max_blocks", "budget", "loads", "sittings", "every",
        "server_host", "client_nodes",
    ];
    let hidden = own.contains(&arg.get_id().as_str());
    arg.hide(hidden)
}

// `rqps gap`: which of the settings that differ make the difference.

/// The time for everything, if none is given.
const BUDGET: Duration = Duration::from_mins(15);

/// `rqps gap`.
pub(super) fn close_gap_between(words: &GapArgs) -> Result<u8> {
    let folder = match &words.resume {
        Some(path) => GapFolder::open(path)
            .context("resume a gap; name the folder that the interrupted command printed")?,
        None => begin_gap(words)?,
    };
    let out = folder.path().to_owned();
    let resumed = words.resume.as_ref().map(|_| words.allow.as_deref());
    let plan = &folder.log().request.plan;
    let options = options_of(plan, &out, resumed, (&words.targets, &words.folders))?;
    let search = |show: &mut dyn FnMut(Event)| close_gap(&options, folder, show);
    let Some(gap) = found("gap", "close the gap", &out, search)? else {
        return Ok(exit::INTERRUPTED);
    };
    let text = match words.format {
        GapFormat::Text => gap_text(&gap, terminal::columns()),
        GapFormat::Html => gap_html(&gap),
        GapFormat::Json => gap_json(&gap)?,
    };
    terminal::escaped(text.as_bytes())?;
    Ok(exit::FINE)
}

/// The folder of a new gap.
fn begin_gap(words: &GapArgs) -> Result<GapFolder> {
    let [_, _] = words.targets.as_slice() else {
        bail!(
            "gap: name two targets, such as `rqps gap mysql@5.7.22:installed mysql@8.0.33:installed \
             --step point-query`"
        );
    };
    let Some(step) = words.step.clone() else {
        bail!(
            "gap: name the step that differs with --step NAME\nhint: `rqps compare` of both targets \
             shows which it is; `rqps plan` lists the steps"
        );
    };
    if !(0.0..1.0).contains(&(words.least / 100.0)) {
        bail!("gap: --least is a percentage, such as 1");
    }
    let shape = WorkloadArgs { budget: None, ..words.shape.clone() };
    let steps = match words.all_steps {
        true if shape.steps.is_empty() => Vec::new(),
        true => shape.steps.iter().chain([&step]).cloned().collect(),
        false => vec![step.clone()],
    };
    let shape = WorkloadArgs { steps, ..shape };
    let plan = plan_with_step(&words.targets, &shape, &step, "rqps gap")?;
    if let [a, b] = plan.targets.as_slice()
        && a.dbms.dialect() != b.dbms.dialect()
    {
        bail!("gap: {} and {} have no settings in common", a.label, b.label);
    }
    let changed = if words.from_b { plan.targets.first() } else { plan.targets.last() };
    if let Some(Target { label, source: BuildSource::Dsn(_), .. }) = changed {
        bail!(
            "gap: {label} is a server that somebody else runs, and rqps changes none of its \
             settings\nhint: put its settings into the other target{}",
            if words.from_b { ": leave --from-b out" } else { " with --from-b" }
        );
    }
    let out = out_of(&words.folders, &plan);
    // In turns, what they watch for cancels, and no block is repeated for it.
    let canaries = plan.canaries && plan.interleave != Interleave::Turns;
    let plan = Plan::build(PlanDraft { canaries, ..plan.draft() })?;
    let request = GapRequest {
        plan: file::print(&plan)?,
        step,
        from_b: words.from_b,
        budget_seconds: words.shape.budget.unwrap_or(BUDGET).as_secs_f64(),
        least: words.least / 100.0,
        all_steps: words.all_steps,
    };
    Ok(GapFolder::create(&out, request)?)
}

#[derive(Debug, Args)]
pub(super) struct GapArgs {
    /// Two targets, A and B: rqps puts settings of A into B until B is as A, as far as it goes
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
    pub targets: Vec<String>,
    /// Step that differs
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Put settings of B into A instead: what of B makes A slower
    #[arg(long)]
    pub from_b: bool,
    /// After the search, measure what it found in all steps, or in those of --steps; this time is
    /// not part of --budget
    #[arg(long)]
    pub all_steps: bool,
    /// Smallest effect that matters, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub least: f64,
    /// Resume the interrupted gap in this folder, or show what it found
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["targets", "step", "from_b", "all_steps", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: measure a gap that is new on this host if all that it would use has this hash
    #[arg(long, value_name = "HASH", requires = "resume")]
    pub allow: Option<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: GapFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GapFormat {
    Text,
    Html,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SearchFormat {
    Text,
    Json,
}

/// Hides the options of workloads that a gap decides itself, and says what its budget is.
pub(super) fn arrange_gap_options(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "budget" => {
            arg.help("Time for everything, such as 30m; what it does not suffice for is named [default: 15m]")
        }
        "steps" => arg.requires("all_steps").help("With --all-steps: measure these steps alone"),
        _ => hide_options_without_effect(arg),
    }
}

// `rqps find-rate`: the most events per second at which response times keep a limit.

/// `rqps find-rate`.
pub(super) fn find_rate(words: &FindRateArgs) -> Result<u8> {
    let folder = match &words.resume {
        Some(path) => RateFolder::open(path)
            .context("resume a search; name the folder that the interrupted command printed")?,
        None => begin_rate(words)?,
    };
    let out = folder.path().to_owned();
    let resumed = words.resume.as_ref().map(|_| words.allow.as_deref());
    let plan = &folder.log().request.plan;
    let options = options_of(plan, &out, resumed, (&words.targets, &words.folders))?;
    let search = |show: &mut dyn FnMut(Event)| best_rate::find(&options, folder, show);
    let Some(rates) = found("find-rate", "find the rate", &out, search)? else {
        return Ok(exit::INTERRUPTED);
    };
    let text = match words.format {
        SearchFormat::Text => best_rate_text(&rates),
        SearchFormat::Json => best_rate_json(&rates)?,
    };
    terminal::escaped(text.as_bytes())?;
    Ok(exit::FINE)
}

/// The folder of a new search.
fn begin_rate(words: &FindRateArgs) -> Result<RateFolder> {
    let (Some(step), Some(limit)) = (words.step.clone(), &words.limit) else {
        bail!(
            "find the rate: name a step and a limit, such as --step point-query --limit \
             'p99<=5ms'"
        );
    };
    let (metric, limit_ms) = limit_of(limit)?;
    let shape = WorkloadArgs { budget: None, ..words.shape.clone() };
    let plan = plan_of_step(&words.targets, &shape, &step, "rqps find-rate")?;
    if plan.workload.pace != Pace::Closed {
        bail!("find the rate: it is what the search finds; leave --rate out");
    }
    let out = out_of(&words.folders, &plan);
    // A disturbed window is one of the few that the search does not believe.
    let plan = Plan::build(PlanDraft { canaries: false, ..plan.draft() })?;
    let request = RateRequest {
        plan: file::print(&plan)?,
        step,
        metric: metric.name().to_owned(),
        limit_ms,
        budget_seconds: words.shape.budget.unwrap_or(BUDGET).as_secs_f64(),
    };
    Ok(RateFolder::create(&out, request)?)
}

/// Metric and milliseconds of `p99<=5ms`.
fn limit_of(text: &str) -> Result<(Metric, f64)> {
    let name = |metric: &Metric| metric.name().trim_end_matches("_ms");
    let parts = text.split_once("<=").or_else(|| text.split_once('<'));
    let known = parts.and_then(|(metric, limit)| {
        let metric = Metric::percentiles().find(|it| name(it) == metric.trim())?;
        let limit = limit.trim();
        let units = [("us", 0.001), ("ms", 1.0), ("s", 1000.0)];
        let (number, unit) =
            units.iter().find_map(|(unit, ms)| Some((limit.strip_suffix(unit)?, *ms)))?;
        let number: f64 = number.trim().parse().ok()?;
        Some((metric, number * unit)).filter(|(_, ms)| *ms > 0.0 && ms.is_finite())
    });
    known.with_context(|| {
        let metrics: Vec<String> =
            Metric::percentiles().map(|metric| name(&metric).to_owned()).collect();
        format!(
            "use the limit `{text}`: write a response time ({}) and a time in us, ms or s, such as \
             'p99<=5ms'",
            metrics.join(", ")
        )
    })
}

#[derive(Debug, Args)]
pub(super) struct FindRateArgs {
    /// Targets: the best rate of each, and its ratio to that of the first
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
    pub targets: Vec<String>,
    /// Step to measure
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Limit of a response time, such as 'p99<=5ms' or 'p95<=800us'
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<String>,
    /// Resume the interrupted search in this folder, or show what it found
    #[arg(long, value_name = "DIR", conflicts_with_all = ["targets", "step", "limit", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: measure a search that is new on this host if all that it would use has this
    /// hash
    #[arg(long, value_name = "HASH", requires = "resume")]
    pub allow: Option<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: SearchFormat,
}

/// Hides the options of workloads that a search decides itself, and says what its budget is.
pub(super) fn arrange_rate_options(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "budget" => arg.help("Time for everything, such as 30m [default: 15m]"),
        "rate" => arg.hide(true),
        _ => hide_options_without_effect(arg),
    }
}

// τ of a comparison or bisection from the layout noise that `rqps doctor --layout` measured.

/// Gives a plan that measures on this host the τ of its products, unless an option names one.
///
/// # Errors
/// As [`tau`].
pub(super) fn set(plan: &mut PlanDraft, words: &Compare) -> Result<()> {
    let here = words.hosts.on.is_none() && words.shape.server_host.is_none();
    if here && words.rules.tau.is_none() {
        let delta = words.rules.delta;
        if let Some(tau) = tau(&plan.targets, &words.folders, delta)? {
            plan.gate.get_or_insert_default().tau = Some(tau);
        }
    }
    Ok(())
}

/// τ of these targets on this host as a share, if all their products were measured here: the
/// largest. `None` if rqps does not start their servers here.
///
/// # Errors
/// The kept noise cannot be read, or is not less than δ.
pub(super) fn tau(targets: &[Target], said: &Folders, delta: Option<f64>) -> Result<Option<f64>> {
    let kept = results::read_layouts(&folders::layouts())?;
    let elsewhere = |target: &Target| matches!(target.source, BuildSource::Dsn(_));
    if kept.is_empty() || targets.iter().any(elsewhere) {
        return Ok(None);
    }
    let place = folders::existing(said);
    let host = fingerprint(&host::read(&place));
    let of = |dbms: Dbms| {
        let own = kept.iter().find(|known| known.dbms == dbms && known.host_fingerprint == host);
        own.and_then(|known| layout_noise(&known.steps)).map(|noise| noise.tau())
    };
    let all: Option<Vec<f64>> = targets.iter().map(|target| of(target.dbms)).collect();
    let Some(ln) = all.and_then(|all| all.into_iter().reduce(f64::max)) else { return Ok(None) };
    let rules =
        Rules { tau: ln, delta: delta.unwrap_or(Rules::default().delta), ..Rules::default() };
    let share = rules.tau_share();
    if rules.fault().is_some() {
        bail!(
            "use the layout noise of this host as tau: it is {:.2} %, and delta is {:.2} %; name a \
             larger --delta, or a --tau of your own",
            100.0 * share,
            100.0 * rules.delta
        );
    }
    info!(
        "rqps: tau is {:.2} %, the layout noise on this host (rqps doctor --layout)",
        100.0 * share
    );
    Ok(Some(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_dsn_is_used_although_no_folder_keeps_it() {
        let words = ["a=postgres://u:secret@h/d".to_owned(), "b=sqlite".to_owned()];
        let (bench, preset) = (vec!["sysbench".to_owned()], "quick".to_owned());
        let shape = WorkloadArgs { bench, preset, ..WorkloadArgs::default() };
        let plan = plan_of(&words, &shape).expect("plan");
        let kept = file::print(&plan).expect("text");
        assert!(!kept.contains("secret"), "{kept}");
        let plan = with_passwords(file::parse(&kept).expect("plan"), &words).expect("plan");
        let source = BuildSource::Dsn("postgres://u:secret@h/d".to_owned());
        assert_eq!(plan.targets[0].source, source);
        assert!(with_passwords(plan, &[]).is_ok(), "what is resumed has no words");
    }

    #[test]
    fn limits_are_response_times() {
        let known = |text: &str| limit_of(text).expect(text);
        assert_eq!(known("p99<=5ms"), (Metric::P99, 5.0));
        assert_eq!(known("p95 < 800us"), (Metric::P95, 0.8));
        assert_eq!(known("max<=1.5s"), (Metric::Max, 1500.0));
        for wrong in ["p99", "p98<=5ms", "p99<=5", "p99<=-5ms", "p99<=infs", "qps<=5ms", ""] {
            let error = limit_of(wrong).expect_err(wrong).to_string();
            assert!(error.contains("p50, p95, p99, p99.9, max"), "{error}");
        }
    }
}
