//! Which files hold secrets by custom? Known by the shape of their names, so that they need not be opened to find out.

use std::path::Path;

/// Containers of keys, by their ending.
const KEY_CONTAINERS: &[&str] = &[
    "pem", "key", "p12", "pfx", "jks", "keystore", "ppk", "kdbx", "gpg", "keytab", "ovpn",
];
/// Words of a name that announce what is inside.
const ANNOUNCING: &[&str] = &[
    "secret",
    "secrets",
    "credential",
    "credentials",
    "password",
    "passwords",
    "passwd",
];
/// Words of the dot files in which programs keep passwords.
const LOGIN_FILES: &[&str] = &[
    "netrc",
    "pgpass",
    "npmrc",
    "pypirc",
    "htpasswd",
    "dockercfg",
    "vault_pass",
];
/// Endings of data. Source code may speak about passwords without holding one.
const DATA: &[&str] = &[
    "",
    "json",
    "yml",
    "yaml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "txt",
    "properties",
    "xml",
    "csv",
];
/// The last word of a file that shows the form and no contents.
const FORMS: &[&str] = &["example", "sample", "template", "dist", "pub"];

/// Does a file of this name hold secrets by custom: `.env`, `id_ed25519`, `server.pem`, `.netrc`, `credentials.json`?
pub fn is_secret_file(path: &Path) -> bool {
    let Some(name) = path
        .file_name()
        .map(|name| name.to_string_lossy().to_ascii_lowercase())
    else {
        return false;
    };
    let words: Vec<&str> = name.split('.').filter(|word| !word.is_empty()).collect();
    let (Some(first), Some(last)) = (words.first().copied(), words.last().copied()) else {
        return false;
    };
    if FORMS.contains(&last) {
        return false;
    }
    let ending = if words.len() > 1 { last } else { "" };
    let is_dot_file = name.starts_with('.') || name.starts_with('_');
    let is_environment = last == "env" || (is_dot_file && first == "env");
    let is_private_key =
        KEY_CONTAINERS.contains(&ending) || (first.starts_with("id_") && ending.is_empty());
    let is_login =
        is_dot_file && words.len() == 1 && LOGIN_FILES.contains(&first.trim_start_matches('_'));
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_announced = parts.any(|part| ANNOUNCING.contains(&part))
        && (DATA.contains(&ending) || words.len() == 1);
    is_environment || is_private_key || is_login || is_announced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_secrets_is_known_by_the_shape_of_its_name() {
        for name in [
            ".env",
            ".env.production",
            "prod.env",
            "config/.ENV.local",
            "id_rsa",
            "deploy/id_ed25519",
            "server.pem",
            "tls/private.key",
            "store.p12",
            ".netrc",
            "_netrc",
            ".npmrc",
            ".git-credentials",
            "credentials.json",
            "client_secret.json",
            "secrets.yml",
            "passwords.txt",
        ] {
            assert!(is_secret_file(Path::new(name)), "{name}");
        }
        for name in [
            "",
            "src/lib.rs",
            ".env.example",
            "env.rs",
            "environment.py",
            "id_map.rs",
            "id_rsa.pub",
            "key.rs",
            "keys.py",
            "secrets.py",
            "password_test.go",
            "test_credentials.rb",
            "package.json",
            "Cargo.toml",
            ".gitignore",
            "public.md",
        ] {
            assert!(!is_secret_file(Path::new(name)), "{name}");
        }
    }
}
