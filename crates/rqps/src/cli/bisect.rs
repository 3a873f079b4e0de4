//! `rqps bisect`: which version changed a step.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Arg, Args, ValueEnum};

use crate::cli::args::{Compare, Folders, RuleOptions};
use crate::cli::folders::{self, execution_options, valgrind};
use crate::cli::measure::plan_of;
use crate::cli::parts::{SittingArgs, WorkloadArgs};
use crate::cli::questions::{self, Origin};
use crate::cli::terminal::{self, Display};
use crate::cli::{exit, gate, hosts, own_workload, vector};
use rqps_analysis::calibration::layout_noise;
use rqps_builds::catalogue::kept_releases;
use rqps_host::host;
use rqps_lab::campaign::bisect::{bisect, searched, versions};
use rqps_lab::lab::{self, ExecutionOptions};
use rqps_lab::plan::{Plan, PlanDraft, file, words};
use rqps_model::benchmark::Phase;
use rqps_model::bisection::{BisectedVersion, BisectionRequest};
use rqps_model::build::{BuildSource, Dbms};
use rqps_model::host::fingerprint;
use rqps_model::metric::Metric;
use rqps_model::target::Target;
use rqps_model::verdict::Rules;
use rqps_report::{bisection_document, bisection_json, render_markdown, render_text};
use rqps_results::{self as results, BisectionFolder};

/// `rqps bisect`.
pub(super) fn search(words: &BisectArgs) -> Result<u8> {
    let folder = match &words.resume {
        Some(path) => BisectionFolder::open(path)
            .context("resume a bisection; name the folder that the interrupted command printed")?,
        None => begin(words)?,
    };
    let plan = file::parse(&folder.log().request.plan).context("use the plan of the bisection")?;
    vector::check_files(&plan)?;
    let out = folder.path().to_owned();
    own_workload::refuse_programs(&plan)?;
    let versions = &folder.log().request.versions;
    let targets = versions.iter().map(|version| version.target.clone()).collect();
    let all = Plan::build(PlanDraft { targets, ..plan.draft() })?;
    let resumed = words.resume.as_ref().map(|_| words.allow.as_deref());
    let options = ExecutionOptions {
        // Without valgrind, rates decide.
        valgrind: valgrind().ok(),
        ..options((plan, &all), (&out, resumed), &words.folders)?
    };
    let mut display = Display::new();
    let end = bisect(&options, folder, &mut |event| display.show(event));
    drop(display);
    let ended = end.with_context(|| format!("bisect ({})", out.display()))?;
    let Some(found) = ended else {
        info!(
            "rqps: stopped; the results so far are in {}\nhint: resume with `rqps bisect \
             --resume {}`",
            out.display(),
            out.display()
        );
        return Ok(exit::INTERRUPTED);
    };
    info!("rqps: results are in {}", out.display());
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
pub(super) fn options(
    (plan, all): (Plan, &Plan),
    (out, resumed): (&Path, Option<Option<&str>>),
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
        work: said.work.clone(),
        debug_folders: folders::debug(&said.debug)?,
        ..execution_options(plan, out.to_owned())?
    })
}

/// The options of a campaign in the folder `out`, by the plan of its log. A resumed one asks about
/// what it would use.
pub(super) fn options_of(
    plan: &str,
    out: &Path,
    resumed: Option<Option<&str>>,
    said: &Folders,
) -> Result<ExecutionOptions> {
    let plan = file::parse(plan).context("use the plan of the folder")?;
    vector::check_files(&plan)?;
    own_workload::refuse_programs(&plan)?;
    options((plan.clone(), &plan), (out, resumed), said)
}

/// The folder of a new bisection.
fn begin(words: &BisectArgs) -> Result<BisectionFolder> {
    let rules = gate::rules(&[], &words.rules)?;
    let metric = words.metric.as_deref().map(metric).transpose()?;
    if let [only] = words.targets.as_slice() {
        bail!(
            "bisect: {only} is one target, and a bisection needs the older and the newer end\n\
             hint: rqps bisect DBMS@OLD DBMS@NEW --step NAME; `rqps builds` lists the versions. For \
             commits: --repo DIR --good REF --bad REF --recipe DBMS"
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
    let versions = versions(&words::targets(&words.target_words())?, &known)?;
    info!("rqps: {} versions", versions.len());
    let all: Vec<String> = versions.iter().map(|version| words::word(&version.target)).collect();
    let shape = WorkloadArgs {
        steps: vec![step.clone()],
        sittings: SittingArgs::default(),
        ..words.shape.clone()
    };
    // All versions must be able to run the step; the plan keeps the two ends.
    let plan = plan_of(&all, &shape)?;
    hosts::refuse_server(&plan, "rqps bisect")?;
    check_step(&plan, &step)?;
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
    let labels: Vec<String> = ends.iter().map(|target| target.label.clone()).collect();
    let plan = Plan::build(PlanDraft { targets: ends, ..plan.draft() })?;
    let out = folders::results(words.folders.out.as_deref(), &labels);
    let request = BisectionRequest { plan: file::print(&plan)?, step, metric, versions, rules };
    Ok(BisectionFolder::create(&out, request)?)
}

/// Refuses a word that is not the name of exactly one measured step.
pub(super) fn check_step(plan: &Plan, step: &str) -> Result<()> {
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
    /// Baseline and candidate: two releases of a DBMS, between which `rqps builds` knows others; or
    /// three or more targets in their order
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
    /// Metric to search by: instr/o, instr_bg/o, o/s, server_cpu_us/o or client_cpu_us/o [default:
    /// the one that shows the difference best]
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
    fn target_words(&self) -> Vec<String> {
        let (Some(repository), Some(recipe)) = (&self.repo, &self.recipe) else {
            return self.targets.clone();
        };
        let (dbms, variant) = recipe.split_once('+').unwrap_or((recipe, ""));
        let plus = if variant.is_empty() { "" } else { "+" };
        let ends = [&self.good, &self.bad].into_iter().flatten();
        let word = |end| format!("{dbms}=src:{}@{end}{plus}{variant}", repository.display());
        ends.map(word).collect()
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
