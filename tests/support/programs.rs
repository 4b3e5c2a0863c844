//! Where the programs are that tests start.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::process::{StartError, output};

/// Finds one of the Kubernetes programs or etcd: in `KUBEBUILDER_ASSETS` where set, else in the cache that
/// `./dev servers` fills.
pub fn server(program: &str) -> Result<PathBuf, StartError> {
    let path = servers_folder()?.join(program);
    if path.is_file() {
        return Ok(path);
    }
    Err(StartError::Missing { program: path.display().to_string(), get_it: "./dev servers".to_owned() })
}

/// Finds a program that comes from a Debian package.
pub fn from_debian(program: &str, package: &str) -> Result<PathBuf, StartError> {
    env::var_os("PATH")
        .and_then(|path| env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()))
        .ok_or_else(|| StartError::Missing { program: program.to_owned(), get_it: format!("apt-get install {package}") })
}

/// Finds what renders charts by Helm's own engine, which `./dev servers` builds too.
pub fn helm_engine() -> Result<PathBuf, StartError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/build.sh");
    let said = output(Command::new(&script).arg("--where"), "find what renders charts")?;
    let path = PathBuf::from(String::from_utf8_lossy(&said).trim());
    if path.is_file() {
        return Ok(path);
    }
    Err(StartError::Missing { program: path.display().to_string(), get_it: "./dev servers".to_owned() })
}

fn servers_folder() -> Result<PathBuf, StartError> {
    // The script computes the folder's name from what the programs are built of; asking it keeps one rule.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/build.sh");
    let folder = output(Command::new(&script).arg("--where"), "find the folder of the server programs")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&folder).trim()))
}
