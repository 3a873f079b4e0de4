//! From where on something is worth a caveat.

/// A client thread that used more than this share of its CPU limits the rate.
pub const CLIENT_BUSY_MAX: f64 = 0.8;
/// A client host that used more than this share of its CPUs limits the rate.
pub const CLIENT_HOST_BUSY_MAX: f64 = 0.8;
/// A client that used more than this share of the CPU of client and server hides differences
/// between servers: what both targets spend alike draws their ratio towards 1.
pub const CLIENT_SHARE_MAX: f64 = 0.2;
/// An open pace that achieves less than this share of the scheduled events is behind.
pub const PACE_ACHIEVED_MIN: f64 = 0.99;
/// Errors below this share of the events of a step are not worth a caveat.
pub const ERROR_SHARE_MIN: f64 = 0.001;
/// Writes that matched no row, from this share of a step's writes on, decide what its rate means.
pub const NO_OP_SHARE_MIN: f64 = 0.1;
/// More CPU time than this share taken by the hypervisor.
pub const STEAL_SHARE_MAX: f64 = 0.01;
/// More CPU time than this share used by processes that are neither rqps nor the server.
pub const FOREIGN_SHARE_MAX: f64 = 0.02;
/// KiB/s that a disk writes in a step that only reads, and that are worth a word: a server without
/// dirty pages writes some KiB/s of logs and statistics.
pub const WRITE_BACK_MIN_KB: f64 = 256.0;
/// Tasks that waited for a CPU for more than this share of a window, where the load itself leaves
/// CPUs free.
pub const PRESSURE_SHARE_MAX: f64 = 0.05;
/// Carry-over of two targets that differs by more than this share and by so many standard errors.
pub const CARRY_OVER_MIN: f64 = 0.005;
/// See [`CARRY_OVER_MIN`].
pub const CARRY_OVER_ERRORS: f64 = 3.0;
/// An interval of fewer pairs is too wide to be of use.
pub const PAIRS_MIN: usize = 3;
