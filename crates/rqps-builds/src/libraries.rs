//! Finds shared libraries that a program needs and this host lacks, with their Debian packages.
//!
//! Asked only when a program does not start. The loader lists them, as it does for ldd(1).

use std::collections::BTreeSet;
use std::path::Path;

use rqps_host::{child, command_output};

/// The loaders of the processors that builds are made for.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// The libraries that the program needs, itself or through another library, and that cannot be
/// found: name and advice. Empty if the file is no program.
pub(super) fn missing(program: &Path) -> Vec<(String, String)> {
    let loader = LOADERS.iter().map(Path::new).find(|loader| loader.exists());
    let listed = loader.and_then(|loader| {
        let mut command = child::stranger(loader).ok()?;
        // It maps the files and starts nothing.
        command.env("LD_TRACE_LOADED_OBJECTS", "1").arg(program);
        command_output::run_stranger(command).ok()
    });
    let listed = listed.map(|listed| listed.output).unwrap_or_default();
    let names: BTreeSet<&str> = not_found(&listed).collect();
    names.into_iter().map(|name| (name.to_owned(), advice(name))).collect()
}

/// The names in lines such as `libz.so.1 => not found`.
pub(super) fn not_found(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.trim().strip_suffix(" => not found"))
}

/// Library and Debian package, where the one does not follow from the other.
const PACKAGES: &[(&str, &str)] = &[
    ("libaio.so.1", "libaio1"),
    ("libatomic.so.1", "libatomic1"),
    ("libbz2.so.1.0", "libbz2-1.0"),
    ("libcrypt.so.1", "libcrypt1"),
    ("libcurl.so.4", "libcurl4"),
    ("libedit.so.2", "libedit2"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libgssapi_krb5.so.2", "libgssapi-krb5-2"),
    ("libkrb5.so.3", "libkrb5-3"),
    ("libldap-2.4.so.2", "libldap-2.4-2, last in Debian 11"),
    ("libldap-2.5.so.0", "libldap-2.5-0"),
    ("liblz4.so.1", "liblz4-1"),
    ("liblzma.so.5", "liblzma5"),
    ("libncurses.so.5", "libncurses5, last in Debian 12"),
    ("libncurses.so.6", "libncurses6"),
    ("libnuma.so.1", "libnuma1"),
    ("libpam.so.0", "libpam0g"),
    ("libpcre2-8.so.0", "libpcre2-8-0"),
    ("libpq.so.5", "libpq5"),
    ("libreadline.so.7", "libreadline7, last in Debian 10"),
    ("libreadline.so.8", "libreadline8"),
    ("libsasl2.so.2", "libsasl2-2"),
    ("libsnappy.so.1", "libsnappy1v5"),
    ("libstdc++.so.6", "libstdc++6"),
    ("libsystemd.so.0", "libsystemd0"),
    ("libtinfo.so.5", "libtinfo5, last in Debian 12"),
    ("libtinfo.so.6", "libtinfo6"),
    ("liburing.so.2", "liburing2"),
    ("libuuid.so.1", "libuuid1"),
    ("libxml2.so.2", "libxml2"),
    ("libxslt.so.1", "libxslt1.1"),
    ("libz.so.1", "zlib1g"),
    ("libzstd.so.1", "libzstd1"),
];

/// The package to install for a library.
fn advice(name: &str) -> String {
    if name == "libaio.so.1" {
        return "install the Debian package libaio1; since Debian 13 it is libaio1t64 with the file \
                libaio.so.1t64: make a link libaio.so.1 to it"
            .to_string();
    }
    let package = PACKAGES.iter().find(|(library, _)| *library == name);
    let package = package.map(|(_, package)| package.to_string()).or_else(|| by_rule(name));
    match package {
        Some(package) => format!("install the Debian package {package}"),
        None => format!("search for its Debian package with `apt-file search {name}`"),
    }
}

/// Families of libraries whose packages carry the version.
fn by_rule(name: &str) -> Option<String> {
    let (stem, version) = name.split_once(".so.")?;
    match (stem, version) {
        ("libssl" | "libcrypto", "1.1") => Some("libssl1.1, last in Debian 11".to_string()),
        ("libssl" | "libcrypto", "1.0.0" | "1.0.2") => Some(format!("libssl{version}")),
        ("libssl" | "libcrypto", "3") => Some("libssl3".to_string()),
        (stem, version) if stem.starts_with("libicu") => Some(format!("libicu{version}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_package() {
        let check = |library: &str, words: &str| {
            let advice = advice(library);
            assert!(advice.contains(words), "{library}: {advice}");
        };
        check("libaio.so.1", "libaio1;");
        check("libnuma.so.1", "package libnuma1");
        check("libtinfo.so.5", "libtinfo5");
        check("libcrypto.so.1.1", "libssl1.1");
        check("libicuuc.so.72", "libicu72");
        check("libxml2.so.2", "libxml2");
        check("libodd.so.9", "apt-file search libodd.so.9");
    }

    #[test]
    fn the_list_of_the_loader_is_understood() {
        let listed = "\tlinux-vdso.so.1 (0x00007ff288723000)\n\tlibodd.so.9 => not found\n\
                      \tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007ff28852b000)\n";
        assert!(not_found(listed).eq(["libodd.so.9"]));
    }

    #[test]
    fn what_runs_lacks_nothing() {
        assert_eq!(missing(&std::env::current_exe().unwrap()), []);
        assert_eq!(missing(Path::new("/etc/passwd")), []);
    }
}
