//! Small files in the forms that `rqps import` reads, made up for tests.

pub(crate) const QPS_ABS: &str = include_str!("../../data/import/qps_abs.txt");

pub(crate) const QPS_REL: &str = include_str!("../../data/import/qps_rel.txt");

pub(crate) const MET: &str = include_str!("../../data/import/met.txt");

pub(crate) const BLOCKS: &str = include_str!("../../data/import/blocks.txt");

pub(crate) const BLOCK_RATIOS: &str = include_str!("../../data/import/block_ratios.txt");

pub(crate) const SB_O: &str = include_str!("../../data/import/sb_o.txt");

/// The banner comes twice; the first sample is that since boot.
pub(crate) const SB_VM: &str = include_str!("../../data/import/sb_vm.txt");

pub(crate) const SB_IO: &str = include_str!("../../data/import/sb_io.txt");

/// The published script's means of the three above: cs (0 + 4000 + 6000) / 4, us + sy
/// (26 + 40 + 44) / 4.
pub(crate) const SB_MET: &str = include_str!("../../data/import/sb_met.txt");

pub(crate) const O_SUM: &str = include_str!("../../data/import/o_sum.txt");

pub(crate) const MRG: &str = include_str!("../../data/import/mrg.txt");

pub(crate) const REL: &str = include_str!("../../data/import/rel.txt");

pub(crate) const HISTOGRAMS: &str = include_str!("../../data/import/histograms.txt");

pub(crate) const SUMMARY: &str = include_str!("../../data/import/summary.txt");

pub(crate) const DBB_SUM: &str = include_str!("../../data/import/dbb_sum.txt");

pub(crate) const DBB_RATES: &str = include_str!("../../data/import/dbb_rates.txt");

pub(crate) const DBB_RATIOS: &str = include_str!("../../data/import/dbb_ratios.txt");

pub(crate) const DBB_LOG: &str = include_str!("../../data/import/dbb_log.txt");

pub(crate) const PLOT: &str = include_str!("../../data/import/plot.txt");

pub(crate) const BUILDS: &str = include_str!("../../data/import/builds.txt");

/// The row of MariaDB missed the point with the padded M, and its seconds are another's.
pub(crate) const SELECTED: &str = include_str!("../../data/import/selected.txt");

pub(crate) const ANN_LOG: &str = include_str!("../../data/import/ann_log.txt");
