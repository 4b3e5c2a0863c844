//! A certificate authority of our own, made with openssl.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    process::{StartError, output},
    programs,
};

/// A certificate authority in a folder: `ca.crt` and `ca.key`.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
}

impl Authority {
    /// Makes a new one in `folder`, which exists.
    pub fn create(folder: &Path) -> Result<Self, StartError> {
        programs::from_debian("openssl", "openssl")?;
        let authority = Self { folder: folder.to_owned() };
        authority.openssl(
            "make a certificate authority",
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "30",
                "-subj",
                "/CN=plinth tests",
                "-keyout",
                "ca.key",
                "-out",
                "ca.crt",
            ],
        )?;
        Ok(authority)
    }

    /// PEM file of the authority's own certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// Makes `NAME.crt` and `NAME.key` for a server on 127.0.0.1, `localhost`, and the address that a cluster's API server has inside of it.
    pub fn issue(&self, name: &str) -> Result<(PathBuf, PathBuf), StartError> {
        let doing = format!("make the certificate of {name}");
        let (key, request, certificate) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"));
        let extensions = format!("{name}.ext");
        let text =
            "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:10.233.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n";
        fs::write(self.folder.join(&extensions), text).map_err(StartError::io(&doing))?;
        self.openssl(
            &doing,
            &[
                "req",
                "-new",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-subj",
                "/CN=localhost",
                "-keyout",
                &key,
                "-out",
                &request,
            ],
        )?;
        self.openssl(
            &doing,
            &[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.crt",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "30",
                "-extfile",
                &extensions,
                "-out",
                &certificate,
            ],
        )?;
        Ok((self.folder.join(certificate), self.folder.join(key)))
    }

    fn openssl(&self, doing: &str, arguments: &[&str]) -> Result<(), StartError> {
        output(Command::new("openssl").args(arguments).current_dir(&self.folder), doing).map(drop)
    }
}

/// Makes a key pair `NAME.key`, `NAME.pub` for signing tokens.
pub(crate) fn key_pair(folder: &Path, name: &str) -> Result<(PathBuf, PathBuf), StartError> {
    let (private, public) = (folder.join(format!("{name}.key")), folder.join(format!("{name}.pub")));
    let doing = format!("make the key pair {name}");
    let generate = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
    output(Command::new("openssl").args(generate).arg(&private), &doing)?;
    output(Command::new("openssl").args(["pkey", "-pubout", "-in"]).arg(&private).arg("-out").arg(&public), &doing)?;
    Ok((private, public))
}
