//! Ladders: many versions in one comparison, in the order of the versions, with the places where
//! the level of a step changed. Histories: the same over the result sets of many days. Series: both
//! over all result sets of a site.

mod changes;
mod dates;
mod fit;
mod hosts;
mod ladder;
mod newest;
mod points;
mod reference;
mod rung;
mod series;

pub use changes::{LevelChange, StepLadder, VersionPoint};
pub use dates::{DateChange, DateHistory, DateOptions, DatePoint, StepDates, date_histories};
pub use hosts::HostChange;
pub use ladder::{Ladder, LadderOptions, OrderError, ladders};
pub use newest::{Newest, PastSets, against_newest};
pub use points::{Condition, PointRun, PointTarget, SetPoints, StepPoints, set_points};
pub use rung::{Rung, family_of};
pub use series::{
    FamilyLadder, FirstSet, LabelDates, LevelLine, SeriesOptions, SeriesSet, StepSeries,
    join_hosts, step_series,
};
