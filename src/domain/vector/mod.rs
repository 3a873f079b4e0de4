//! What vector search asks for: its scale beyond the common one, and the work of a step.

mod point;
mod shape;
mod work;

pub use point::{Point, of_clients};
pub use shape::{Case, DataSource, Distance, Iterative, Neighbours, PgBuild, Variant, VectorShape};
pub use work::{Filter, Index, Level, Present, Search, VectorOperation, VectorWork};
