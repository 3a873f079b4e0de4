//! Measures the error rates and the power of verdicts: the tables of docs/verdicts.md.
//!
//!     cargo bench --bench error_rates [-- PART-OF-A-NAME | "| 4-30"]

#![allow(clippy::print_stdout, reason = "a program of its own")]

mod simulated;

use anyhow::Result;

use rqps_model::verdict::Rules;
use simulated::folders::{FOLDERS, FolderScene, simulate_folders};
use simulated::turns::{TURNS, TurnScene, simulate_turns};
use simulated::{Disturbing, HostScene, simulate_host};
use simulated::{QUIET, Scene, simulate};

const CAMPAIGNS: u32 = 2000;
/// Divisor of the number of campaigns on disturbing hosts; each is judged three times.
const HOST_SHARE: u32 = 10;
/// Divisor of the number of campaigns that are written as run folders and read again.
const FOLDER_SHARE: u32 = 4;
/// Divisor of the number of campaigns in turns; a row has three scenes, each judged twice.
const TURN_SHARE: u32 = 4;

fn main() -> Result<()> {
    // `cargo bench` passes this option; `cargo test` needs only two campaigns.
    let campaigns = if std::env::args().any(|word| word == "--bench") { CAMPAIGNS } else { 2 };
    let head = "| scene | n | power | SAME though changed | false, per campaign | any false | \
                small, per campaign | any small | gate | SAME | blocks |";
    println!("{head}\n{}", "|---".repeat(11) + "|");
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with("--"));
    for (name, scene) in scenes() {
        let looks = scene.first_look.map_or_else(String::new, |first| format!("{first}-"));
        let pairs = format!("{looks}{}", scene.pairs);
        let head = format!("{name} | {pairs}");
        if wanted.as_ref().is_some_and(|wanted| !head.contains(wanted.as_str())) {
            continue;
        }
        let rates = simulate(&scene, &Rules::default(), campaigns, 7);
        println!(
            "| {head} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} \
             | {:.1} |",
            rates.power,
            rates.missed,
            rates.false_large,
            rates.any_large,
            rates.false_small,
            rates.any_small,
            rates.gate,
            rates.same,
            rates.blocks,
        );
    }
    println!();
    print_hosts((campaigns / HOST_SHARE).max(2), wanted.as_deref());
    println!();
    print_turns((campaigns / TURN_SHARE).max(2), wanted.as_deref());
    println!();
    print_folders((campaigns / FOLDER_SHARE).max(2), wanted.as_deref())
}

/// The table of campaigns that go through run folders, the comparison and the gate.
fn print_folders(campaigns: u32, wanted: Option<&str>) -> Result<()> {
    let heads = "| scene | steps | blocks | noise | any SLOWER or FASTER | with SMALL | gate fails \
                 | interval holds truth | of loud or lone steps | found at -3 % |";
    println!("{heads}\n{}", "|---".repeat(10) + "|");
    for (name, scene) in folder_scenes() {
        if wanted.is_some_and(|wanted| !name.contains(wanted)) {
            continue;
        }
        let dir = tempfile::tempdir()?;
        let rates = simulate_folders(&scene, campaigns, dir.path())?;
        println!(
            "| {name} | {} | {} | {:.1} % | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
            scene.steps,
            scene.blocks,
            100.0 * scene.noise,
            rates.any_large,
            rates.any,
            rates.gate,
            rates.held,
            rates.held_odd,
            rates.found,
        );
    }
    Ok(())
}

fn folder_scenes() -> Vec<(&'static str, FolderScene)> {
    let loud = FolderScene { loud: 5.0, ..FOLDERS };
    let start = FolderScene { noise: 0.01, start: 0.03, ..FOLDERS };
    let session = FolderScene { noise: 0.01, session: 0.03, sets: 2, ..FOLDERS };
    let layout = FolderScene { noise: 0.005, layout: 0.0075, tau: 0.015, ..FOLDERS };
    let slower = FolderScene { noise: 0.005, slower: 4, steps: 42, ..FOLDERS };
    let mut scenes = Vec::new();
    for noise in [0.01, 0.05, 0.1] {
        for (steps, blocks) in [(1, 4), (6, 3), (12, 4), (42, 3), (42, 4), (42, 12)] {
            scenes.push(("equal noise", FolderScene { noise, steps, blocks, ..FOLDERS }));
        }
    }
    for (steps, blocks) in [(12, 3), (42, 3), (42, 4), (42, 6), (42, 12)] {
        scenes.push(("loud tenth", FolderScene { steps, blocks, ..loud }));
    }
    for blocks in [3, 4, 6] {
        let louder = FolderScene { loud: 3.0, blocks, steps: 42, ..FOLDERS };
        scenes.push(("loud tenth, 3 times", louder));
    }
    for (steps, blocks) in [(6, 3), (20, 3), (42, 4)] {
        scenes.push(("shared start", FolderScene { steps, blocks, ..start }));
    }
    for (steps, sets) in [(20, 2), (42, 2), (42, 3)] {
        scenes.push(("shared session", FolderScene { steps, sets, ..session }));
    }
    scenes.push(("mixed sets", FolderScene { alone: 6, ..session }));
    scenes.push(("mixed sets", FolderScene { alone: 6, session: 0.0, noise: 0.05, ..session }));
    scenes.push(("equal pairs", FolderScene { equal: 6, ..FOLDERS }));
    for blocks in [4, 12] {
        scenes.push(("delta below 2 tau", FolderScene { blocks, steps: 42, ..layout }));
    }
    scenes.push(("eight targets", FolderScene { targets: 8, blocks: 6, ..FOLDERS }));
    scenes.push(("eight targets", FolderScene { targets: 8, blocks: 3, noise: 0.01, ..FOLDERS }));
    for steps in [12, 42] {
        scenes.push(("two blocks", FolderScene { blocks: 2, steps, ..loud }));
    }
    for (blocks, memory) in [(6, 0.5), (12, 0.5), (12, 0.8)] {
        scenes.push(("blocks that follow each other", FolderScene { blocks, memory, ..FOLDERS }));
    }
    for noise in [0.01, 0.05] {
        let scene = FolderScene { blocks: 8, first_look: Some(4), noise, ..FOLDERS };
        scenes.push(("optional stopping", scene));
    }
    scenes.push(("four steps lose 3 %", slower));
    scenes.push(("four steps lose 3 %, turns", FolderScene { turns: true, ..slower }));
    scenes.push(("all steps lose 3 %, turns", FolderScene { turns: true, slower: 42, ..slower }));
    scenes
}

/// The table of disturbing hosts: a row judged by the pairs alone, and one with the facts about the
/// host.
fn print_hosts(campaigns: u32, wanted: Option<&str>) {
    let heads = "| scene | n | judged by | found at -10 % | found at -30 % | any false | SAME \
                 | NO VERDICT |";
    println!("{heads}\n{}", "|---".repeat(8) + "|");
    for (name, host, aa) in hosts() {
        for pairs in [4, 7] {
            let head = format!("{name} | {pairs}");
            if wanted.is_some_and(|wanted| !head.contains(wanted)) {
                continue;
            }
            let [small, large] = [0.1_f64, 0.3].map(|loss| {
                let effect = (1.0 - loss).ln();
                let scene = Scene { changed: 4, effect, layout: 0.005, pairs, ..QUIET };
                simulate_host(&HostScene { scene, host, aa }, campaigns, 7)
            });
            for (rule, (small, large)) in
                ["pairs", "pairs and host"].iter().zip(small.iter().zip(large))
            {
                println!(
                    "| {head} | {rule} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
                    small.power, large.power, small.any_large, small.same, small.silent
                );
            }
        }
    }
}

/// The table of turns: if blocks share loads, a row judged by the pairs alone, and one by rqps's
/// rules.
fn print_turns(campaigns: u32, wanted: Option<&str>) {
    let heads = "| scene | blocks | loads | judged by | sd of d | any false | any small | SAME \
                 | found at -2 % | SLOWER at -3 % | interval holds truth |";
    println!("{heads}\n{}", "|---".repeat(11) + "|");
    for (name, scene) in turn_scenes() {
        let head = format!("{name} | {} | {}", scene.blocks, scene.loads);
        if wanted.is_some_and(|wanted| !head.contains(wanted)) {
            continue;
        }
        let none = simulate_turns(&scene, campaigns, 7);
        let [two, three] = [0.02_f64, 0.03].map(|loss| {
            let (changed, effect) = (scene.steps.min(4), (1.0 - loss).ln());
            simulate_turns(&TurnScene { changed, effect, ..scene }, campaigns, 7)
        });
        let rules = if scene.loads > 1 && scene.loads < scene.blocks {
            &["pairs", "loads"][..]
        } else {
            &["pairs"][..]
        };
        for (at, rule) in rules.iter().enumerate() {
            println!(
                "| {head} | {rule} | {:.2} % | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
                100.0 * none[at].sd,
                none[at].any_large,
                none[at].any_small,
                none[at].same,
                two[at].found,
                three[at].slower,
                none[at].held,
            );
        }
    }
}

fn turn_scenes() -> Vec<(&'static str, TurnScene)> {
    let loaded = TurnScene { load: 0.005, ..TURNS };
    let mut scenes = vec![
        ("turns of 2 s", TurnScene { turn: 2.0, ..TURNS }),
        ("turns of 1 s", TurnScene { turn: 1.0, ..TURNS }),
        ("turns of 100 ms", TurnScene { turn: 0.1, ..TURNS }),
    ];
    for blocks in [3, 4, 6, 12] {
        scenes.push(("turns of 20 ms", TurnScene { blocks, ..TURNS }));
    }
    for (name, uneven, restart) in [
        ("noise x 1 to 5", 5.0, 0.003),
        ("noise x 1 to 30", 30.0, 0.003),
        ("noise x 1 to 5, starts 1 %", 5.0, 0.01),
    ] {
        for blocks in [3, 6] {
            let scene = TurnScene { blocks, uneven, restart, ..TURNS };
            scenes.push((name, scene));
            scenes.push((
                "same, without errors inside blocks",
                TurnScene { with_inside: false, ..scene },
            ));
        }
    }
    for (name, restart) in [("one step", 0.003), ("one step, starts 1 %", 0.01)] {
        for blocks in [3, 4, 6] {
            let scene = TurnScene { steps: 1, blocks, restart, ..TURNS };
            scenes.push((name, scene));
            scenes.push((
                "same, without errors inside blocks",
                TurnScene { with_inside: false, ..scene },
            ));
        }
    }
    let cold = TurnScene { carry_over: [0.05; 2], ..TURNS };
    scenes.push(("turns of 20 ms, carry-over 5 %", cold));
    scenes.push((
        "turns of 20 ms, carry-over 5 and 7 %",
        TurnScene { carry_over: [0.05, 0.07], ..TURNS },
    ));
    for (blocks, loads) in [(6, 1), (6, 2), (6, 3), (6, 6), (12, 4), (12, 12)] {
        scenes.push(("turns of 20 ms, loads 0.5 %", TurnScene { blocks, loads, ..loaded }));
    }
    scenes
}

/// Name, the host, and the host during its A/A run.
fn hosts() -> [(&'static str, Disturbing, Option<Disturbing>); 6] {
    let calm = Disturbing::default();
    let busy = Disturbing { share: 0.4, sd: 0.1, ..calm };
    let slot = Disturbing { slot: 0.02, ..calm };
    let offset = Disturbing { offset: 0.02, ..calm };
    [
        ("calm, A/A run", calm, Some(calm)),
        ("busy, no A/A run", busy, None),
        ("busy, A/A run as busy", busy, Some(busy)),
        ("busy, A/A run calm", busy, Some(calm)),
        ("slot effect 2 %, A/A run", slot, Some(slot)),
        ("offsets 2 %, A/A run", offset, Some(offset)),
    ]
}

fn scenes() -> Vec<(String, Scene)> {
    let drifting = Scene { drift: 0.02, ..QUIET };
    let laid_out = Scene { layout: 0.005, ..QUIET };
    let both = Scene { layout: 0.005, ..drifting };
    let mut scenes = Vec::new();
    for pairs in [3, 4, 6, 8, 10, 20] {
        for (name, scene) in [
            ("A/A", QUIET),
            ("A/A, drift 2 %", drifting),
            ("A/A, layout 0.5 %", laid_out),
            ("A/A, both", both),
        ] {
            scenes.push((name.to_owned(), Scene { pairs, ..scene }));
        }
    }
    for steps in [1, 2, 3, 4, 5, 9, 20] {
        for pairs in [4, 8] {
            scenes.push((format!("A/A, both, {steps} steps"), Scene { steps, pairs, ..both }));
        }
    }
    for effect in [0.02_f64, 0.03, 0.05, 0.10] {
        for pairs in [4, 6, 8, 10, 20] {
            let scene = Scene { changed: 4, effect: (1.0 - effect).ln(), pairs, ..laid_out };
            scenes.push((format!("4 of 42 at -{:.0} %, layout 0.5 %", 100.0 * effect), scene));
        }
    }
    for pairs in [8, 12, 20, 30] {
        for (name, scene) in [("A/A", QUIET), ("A/A, both", both)] {
            let scene = Scene { pairs, first_look: Some(4), ..scene };
            scenes.push((format!("auto, {name}"), scene));
        }
        for effect in [0.02_f64, 0.03, 0.05, 0.10] {
            let effect_ln = (1.0 - effect).ln();
            let scene =
                Scene { changed: 4, effect: effect_ln, pairs, first_look: Some(4), ..laid_out };
            scenes.push((format!("auto, 4 of 42 at -{:.0} %", 100.0 * effect), scene));
        }
    }
    scenes
}
