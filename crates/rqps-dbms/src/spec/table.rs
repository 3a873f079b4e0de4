//! The table of all DBMSs.

use crate::control::ControlPlane;
use crate::error::DbmsError;
use crate::site::Site;
use crate::spec::row::DbmsSpec;
use crate::sql_server::ServerCalls;
use crate::{client, fake, mariadb, mysql, postgres, rocksdb, speedb, sqlite};
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;

/// One row for each DBMS that rqps can run.
pub const ALL: &[DbmsSpec] = &[
    postgres::SPEC,
    mysql::SPEC,
    mariadb::SPEC,
    sqlite::SPEC,
    rocksdb::SPEC,
    speedb::SPEC,
    client::SPEC,
    fake::SPEC,
];

/// The row of a DBMS; `None` for a product that is only in imported results.
pub fn of(dbms: Dbms) -> Option<&'static DbmsSpec> {
    ALL.iter().find(|spec| spec.dbms == dbms)
}

/// The queries on a server of this dialect that rqps does not run.
pub(crate) fn guest_calls(dialect: Dialect) -> Option<&'static dyn ServerCalls> {
    ALL.iter().filter(|spec| spec.dbms.dialect() == dialect).find_map(|spec| spec.guest)
}

/// The control plane of a target whose server rqps runs itself. For servers that somebody else
/// runs see [`crate::external`].
pub fn control_plane(site: Site) -> Result<Box<dyn ControlPlane>, DbmsError> {
    let spec = of(site.build.manifest.dbms).ok_or(DbmsError::Unknown)?;
    (spec.control)(site)
}
