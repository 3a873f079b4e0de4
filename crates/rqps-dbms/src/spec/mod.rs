//! Facts about each DBMS: one row each, in its folder, and the table of all.

mod log_size;
mod row;
mod source;
mod table;

pub use self::log_size::log_mb;
pub use self::row::{
    Arrangement, BuildForm, BuildRow, Connect, DbmsSpec, DebianLayout, GuestCalls, GuestSettle,
    LibraryForm, LibraryVersion, Machine, Numbering, Origin, Package, PackageFormat, RowSource,
    ServerCounters, ServerForm, SourceOrigin, StatusFiles, TagScheme, Tell,
};
pub use self::source::{
    BuildVariant, VariantFile, build_variant, build_words, files_of_variant, is_build_word,
    is_recipe_file, patch_file, recipe_name, relink_order, relink_word,
};
pub use self::table::{ALL, control_plane, of};

pub(super) use self::table::guest_calls;
