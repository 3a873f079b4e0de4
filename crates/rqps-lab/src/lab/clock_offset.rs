//! The offset of the clocks of another host from those of this host, by the method of Cristian
//! (1989): the other host tells the time between the two ends of a round trip, so its clock is
//! known to within half of it. Of several round trips the quickest counts.

/// Clocks of a host at one moment, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// The monotonic clock.
    pub(super) monotonic_ns: u64,
    /// The wall clock.
    pub(super) unix_ns: u64,
}

/// The offset of another host's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockOffset {
    /// Lead of its monotonic clock, nanoseconds.
    monotonic_ns: i128,
    /// Lead of its wall clock, nanoseconds.
    unix_ns: i128,
    /// The quickest round trip, nanoseconds.
    pub(super) round_trip_ns: u64,
}

impl ClockOffset {
    /// From one round trip: the clocks here at its start, there in between, the monotonic clock
    /// here at its end.
    pub(super) fn of(start: ClockReading, there: ClockReading, end_ns: u64) -> ClockOffset {
        let round_trip_ns = end_ns.saturating_sub(start.monotonic_ns);
        let half = i128::from(round_trip_ns / 2);
        ClockOffset {
            monotonic_ns: i128::from(there.monotonic_ns) - i128::from(start.monotonic_ns) - half,
            unix_ns: i128::from(there.unix_ns) - i128::from(start.unix_ns) - half,
            round_trip_ns,
        }
    }

    /// The one that is known better.
    pub(super) fn better(self, other: ClockOffset) -> ClockOffset {
        if other.round_trip_ns < self.round_trip_ns { other } else { self }
    }

    /// A moment of this host's monotonic clock on that of the other.
    pub(super) fn there(&self, here_ns: u64) -> u64 {
        u64::try_from(i128::from(here_ns) + self.monotonic_ns).unwrap_or(0)
    }

    /// A moment of the other host's monotonic clock on that of this one.
    pub(super) fn here(&self, there_ns: u64) -> i128 {
        i128::from(there_ns) - self.monotonic_ns
    }

    /// Lead of its wall clock, milliseconds.
    pub(super) fn ahead_ms(&self) -> f64 {
        self.unix_ns as f64 / 1e6
    }

    /// Largest error of the offset, milliseconds.
    pub(super) fn bound_ms(&self) -> f64 {
        self.round_trip_ns as f64 / 2e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_within_half_of_the_round_trip() {
        // Its clock is 1000 behind; the way there takes 30, the way back 10.
        let at = |ns: u64| ClockReading { monotonic_ns: ns, unix_ns: 10 * ns };
        let slow = ClockOffset::of(at(5000), at(4030), 5040);
        let error = slow.monotonic_ns + 1000;
        assert_eq!((error, slow.round_trip_ns), (10, 40));
        assert!(error.unsigned_abs() as f64 <= 1e6 * slow.bound_ms());
        let quick = ClockOffset::of(at(6000), at(5004), 6008);
        assert_eq!(slow.better(quick), quick);
        assert_eq!(quick.better(slow), quick);
        assert_eq!((quick.there(7000), quick.here(6000)), (6000, 7000));
    }
}
