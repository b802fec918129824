//! Collects the private names in logged calls: projects, files, sessions, users and hosts.

use crate::answers::private_names::PrivateNames;
use supervisor_engine::session::detail::LoggedCall;
use supervisor_models::Env;

pub(crate) fn private_names<'a>(
    calls: impl Iterator<Item = &'a LoggedCall>,
    env: &Env,
) -> PrivateNames {
    let mut names = PrivateNames::of_this_machine();
    for variable in ["USER", "LOGNAME", "HOSTNAME"] {
        if let Some(value) = env.get(variable) {
            names.add_word(&value);
        }
    }
    if let Ok(host) = rustix::system::uname().nodename().to_str() {
        names.add_word(host);
    }
    for call in calls {
        let entry = call.entry();
        names.add_session(&entry.session_id);
        names.add_project(&entry.project_root);
        names.add_file(&entry.file_path);
        for (name, value) in entry.input.as_object().into_iter().flatten() {
            let is_path = name.ends_with("path") || name == "files";
            let values = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            for path in values
                .iter()
                .filter_map(|value| value.as_str())
                .filter(|_| is_path)
            {
                names.add_file(path.split("::").next().unwrap_or(path));
            }
        }
    }
    names
}
