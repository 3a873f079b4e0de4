//! Facts about each DBMS: one row each, in its folder, and the table of all.

mod row;
mod source;
mod table;

pub use self::row::{
    Arrangement, BuildForm, BuildRow, DbmsSpec, DebianLayout, LibraryForm, LibraryVersion, Machine,
    Numbering, Origin, Package, PackageFormat, RowSource, ServerForm, SourceOrigin, TagScheme,
};
pub use self::source::{
    BuildVariant, VariantFile, build_variant, build_words, files_of_variant, is_build_word,
    is_recipe_file, patch_file, recipe_name, relink_order, relink_word,
};
pub use self::table::{ALL, control_plane, of};

pub(super) use self::table::guest_calls;
