//! `rqps doctor --layout`: the noise of code layout of a DBMS on this host.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

use crate::cli::args::{Doctor, DoctorFormat};
use crate::cli::doctor::{self, Measured};
use crate::cli::{exit, folders, hosts, measure};
use rqps_analysis::VerdictOptions;
use rqps_analysis::calibration::{LayoutNoise, layout_noise, layout_rates};
use rqps_dbms::spec::relink_word;
use rqps_lab::benchmarks;
use rqps_lab::plan::words;
use rqps_model::build::BuildSource;
use rqps_model::escape;
use rqps_model::layout::LayoutRates;
use rqps_model::target::Target;
use rqps_results as results;

/// Default number of blocks.
const BLOCKS: u32 = 6;

/// `--layout`: measures, stores and prints.
pub(super) fn measure(said: &Doctor, target: &str) -> Result<u8> {
    let targets = relinked(target, said.relink)?;
    let plan = measure::plan_of(&targets, &doctor::shape(said, BLOCKS))?;
    hosts::refuse_server(&plan, "rqps doctor --layout")?;
    let layouts = folders::layouts();
    let kept = ("layout noise", layouts.as_path());
    let (out, code) = match doctor::carry_out(said, plan, kept)? {
        Measured::Done(out, code) => (out, code),
        Measured::Stopped => return Ok(exit::INTERRUPTED),
    };
    let dataset = results::read(std::slice::from_ref(&out)).context("read the results")?;
    let comparison =
        benchmarks::compare(&dataset, &VerdictOptions::default()).context("compare")?;
    let known = layout_rates(&dataset, &comparison, target)?;
    let Some(noise) = layout_noise(&known.steps) else {
        bail!("layout: no step has two blocks in which all builds completed it");
    };
    let file = results::keep_layout(&layouts, &known)?;
    info!("rqps: results are in {}; the layout noise is {}", out.display(), file.display());
    match said.format {
        DoctorFormat::Json => {
            let mut json = serde_json::to_value(&known)?;
            json["tau"] = noise.tau().exp_m1().into();
            json["p"] = noise.p.into();
            out!("{}", escape::json(&serde_json::to_string_pretty(&json)?));
        }
        DoctorFormat::Text => out!("{}", text(&known, &noise).trim_end()),
    }
    Ok(code)
}

/// A target for each order of linking.
fn relinked(target: &str, count: u32) -> Result<Vec<String>> {
    if words::label_of(target).is_some() {
        bail!("relink `{target}`: leave out the label; rqps labels the orders of linking");
    }
    // The word is shown as written where it is wrong.
    let parsed = words::targets(&[target.to_owned()])?;
    let Some(Target { source: BuildSource::Source { folder, reference, variant }, .. }) =
        parsed.first()
    else {
        bail!("relink `{target}`: this needs sources; write DBMS=src:DIR@REF (docs/builds.md)");
    };
    let of = |order: u32| {
        let words = variant.iter().cloned().chain([relink_word(order)]);
        let (folder, reference) = (folder.clone(), reference.clone());
        let variant = Some(words.collect::<Vec<_>>().join("+"));
        let source = BuildSource::Source { folder, reference, variant };
        let label = format!("order-{order}");
        words::word(&Target { label, source, ..parsed[0].clone() })
    };
    Ok((1..=count).map(of).collect())
}

fn text(known: &LayoutRates, noise: &LayoutNoise) -> String {
    let percent = |ln: f64| format!("{:.2} %", 100.0 * ln.exp_m1());
    let blocks = known.steps.first().and_then(|step| step.rates.first()).map_or(0, Vec::len);
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "{}, functions linked in {} orders, {blocks} blocks (host {})\n",
        known.target, known.layouts, known.host_fingerprint
    );
    let _ = writeln!(text, "{:>9} {:>9} {:>8}  step", "layout", "noise", "p");
    for step in &known.steps {
        let Some(own) = layout_noise(std::slice::from_ref(step)) else { continue };
        let (sd, error) = (percent(own.build_sd), percent(own.error));
        let _ = writeln!(text, "{sd:>9} {error:>9} {:>8.3}  {}", own.p, step.step);
    }
    let _ = writeln!(
        text,
        "\nLayout of one build: standard deviation {}, at most {} (90 %); noise of its mean {}; p \
         {:.3}.\nTau: {}. `compare` and `bisect` use it for {} on this host unless --tau or \
         [gate] names another.",
        percent(noise.build_sd),
        percent(noise.build_sd_upper),
        percent(noise.error),
        noise.p,
        percent(noise.tau()),
        known.dbms
    );
    if noise.build_sd < noise.error {
        text.push_str(
            "The noise is larger than the layout: measure more blocks for a smaller tau.\n",
        );
    }
    text
}
