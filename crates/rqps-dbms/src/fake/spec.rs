//! The fake DBMS, for tests of rqps itself.

use crate::spec::{BuildForm, DbmsSpec, Numbering};
use rqps_model::build::Dbms;

use super::control::Fake;

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Fake,
    form: BuildForm::Scripted,
    builds: &[],
    scheme: |_, _| None,
    instead: "",
    numbering: Numbering::PLAIN,
    package: None,
    debian: None,
    configs: &[("default", include_str!("../../../../configs/fake/default.conf"))],
    recipes: &[],
    tags: None,
    control: |site| Ok(Box::new(Fake::new(site))),
    guest: None,
};
