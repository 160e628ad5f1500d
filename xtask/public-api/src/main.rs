//! Prints the public items of a crate, one per line: `outlast-public-api RUSTDOC_JSON`.
//!
//! Implementations that the compiler derives for every type of their kind (blanket, auto trait and
//! auto derived implementations) are left out.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: outlast-public-api RUSTDOC_JSON")?;
    let api = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    for item in api.items() {
        println!("{item}");
    }
    Ok(())
}
