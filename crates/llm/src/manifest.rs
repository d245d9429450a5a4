//! Where Ollama keeps the file of a model that it knows by a name: its manifest says which blob that is.

use crate::error::LlmError;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// The GGUF of the model `name` in the folder `models`: `gemma2`, `gemma2:2b`, `someone/model:tag`, `host/someone/model:tag`.
///
/// # Errors
/// [`LlmError::File`] when the folder knows no such model, or not where its file is.
pub fn model_file(models: &Path, name: &str) -> Result<PathBuf, LlmError> {
    let (name, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).unwrap_or((name, "latest"));
    let full = match name.matches('/').count() {
        0 => format!("registry.ollama.ai/library/{name}"),
        1 => format!("registry.ollama.ai/{name}"),
        _ => name.to_owned(),
    };
    let path = models.join("manifests").join(full).join(tag);
    let failed = |source| LlmError::File { action: "read the manifest", path: path.clone(), source };
    let text = std::fs::read_to_string(&path).map_err(failed)?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| failed(io::Error::other(error)))?;
    let weights = manifest.layers.into_iter().find(|layer| layer.media_type == "application/vnd.ollama.image.model");
    let layer = weights.ok_or_else(|| failed(io::Error::other("it names no file of weights")))?;
    let digest = layer.digest.strip_prefix("sha256:").filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let digest = digest.ok_or_else(|| failed(io::Error::other("its digest is none")))?;
    Ok(models.join("blobs").join(format!("sha256-{digest}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_ollama_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join("manifests/registry.ollama.ai").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let text = r#"{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:00"},
            {"mediaType":"application/vnd.ollama.image.model","digest":"sha256:ab12","size":5}]}"#;
        put("library/gemma2/2b", text);
        put("library/gemma2/latest", text);
        put("someone/gemma/2b", text);
        put(
            "library/bad/latest",
            r#"{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../x"}]}"#,
        );
        let blob = dir.path().join("blobs/sha256-ab12");
        for name in ["gemma2", "gemma2:2b", "someone/gemma:2b", "registry.ollama.ai/library/gemma2:2b"] {
            assert_eq!(model_file(dir.path(), name).unwrap(), blob, "{name}");
        }
        for name in ["gemma3", "gemma2:9b", "bad"] {
            assert!(model_file(dir.path(), name).unwrap_err().to_string().contains("manifest"), "{name}");
        }
    }
}
